// repository.cc: look, compare, load aside, publish. One thread does all of it, so that two loads never fight for memory: what clients ask for is queued to it.
//
// Polling instead of inotify: it sees network file systems, ConfigMap links and files replaced in place alike, and costs a few stat calls.

#include "runtime/serving/repository/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/log.h"
#include "runtime/formats/model_file.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPolledFiles = 4096;  // of a version, twice a second; who asks for a load has all of them looked at

std::string last_name(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

Fingerprint joined(Fingerprint version, const Fingerprint& settings) {
  version.parts.insert(version.parts.end(), settings.parts.begin(), settings.parts.end());
  return version;
}

/// Once when it begins, and once when it is over.
void say_unreadable(const std::string& subject, std::string& said, const std::string& why) {
  if (said == why) return;
  if (why.empty())
    log::info("{}: can be looked at again", subject);
  else
    log::error("{}: {}; what is loaded goes on serving", subject, why);
  said = why;
}

/// Under other names than before, a version has to be ready first: until then a label stays with the one that it had.
Labels labels_now(const ModelEntry& model, Labels labels) {
  const auto ready = [&](uint64_t number) {
    const auto held = model.versions.find(number);
    return held != model.versions.end() && held->second.version;
  };
  for (auto& [label, number] : labels) {
    const auto before = model.labels.find(label);
    if (before != model.labels.end() && !ready(number) && ready(before->second)) number = before->second;
  }
  return labels;
}

}  // namespace

Repository::Repository(ModelSource source, Host& host, const SchedulerFactory& schedulers)
    : source_(std::move(source)),
      host_(host),
      schedulers_(schedulers),
      roots_(source_.roots),
      granted_(source_.roots),
      lister_(source_.control == Control::kPoll ? kMostPolledFiles : SIZE_MAX) {}

Result<std::unique_ptr<Repository>> Repository::open(ModelSource source, Host& host, const SchedulerFactory& schedulers) {
  std::unique_ptr<Repository> repository(new Repository(std::move(source), host, schedulers));
  SERIN_CHECK(repository->check_places());
  return repository;
}

std::map<std::string, std::string> Repository::load() {
  for (const std::string& remark : source_.list.remarks) lister_.remarks.say(remark);
  scan(Look::kOnce);
  std::map<std::string, std::string> without = missing();
  for (const auto& [name, why] : without) log::error("model '{}': {}", name, why);
  if (source_.control != Control::kExplicit && catalogue_.get()->models.empty() && listed_)
    for (const ModelRoot& root : roots_)
      if (root.name.empty())
        log::warning("{}: no model in it yet; expected <name>/<version>/model.onnx{}", root.path, describe_misplaced(root));
  thread_ = std::thread([this] { run(); });
  return without;
}

/// What an exception would end is the process, and nobody's request is worth that.
Status Repository::guarded(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::exception& e) {
    return Error{Code::kInternal, e.what()};
  }
}

void Repository::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Repository::stop_within(std::chrono::milliseconds limit) {
  const MutexLock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  return wake_.wait_for(mutex_, limit, [this]() SERIN_REQUIRES(mutex_) { return stopped_ || !thread_.joinable(); });
}

void Repository::run() {
  const MutexLock lock(mutex_);
  const auto list_poll = source_.list.poll.value_or(source_.control == Control::kPoll ? source_.poll : std::chrono::milliseconds(0));
  const bool watches_list = !source_.list.path.empty() && list_poll.count() > 0;
  auto next_look = Clock::now() + source_.poll, next_list = watches_list ? Clock::now() + list_poll : Clock::time_point::max();
  const auto look = [this] {
    if (source_.control == Control::kPoll) {
      scan(Look::kWatching);
      take_what_has_come();
    }
    move_lost();
    return Status();
  };
  while (!stopping_) {
    wake_.wait_until(mutex_, std::min(next_look, next_list), [this]() SERIN_REQUIRES(mutex_) { return stopping_ || !orders_.empty(); });
    if (stopping_) break;
    std::function<void()> order;
    if (!orders_.empty()) {
      order = std::move(orders_.front());
      orders_.pop_front();
    }
    const MutexUnlock unlocked(mutex_);
    if (order) {
      order();
    } else if (Clock::now() >= next_list) {
      if (const Status looked = guarded([this] { return watch_list(), Status(); }); !looked)
        log::error("{}: {}", source_.list.path, looked.error().message);
      next_list = Clock::now() + list_poll;
    } else {
      if (const Status looked = guarded(look); !looked) log::error("looking at the models: {}", looked.error().message);
      next_look = Clock::now() + source_.poll;
    }
  }
  stopped_ = true;
  wake_.notify_all();
}

void Repository::scan(Look look) {
  auto found = list();
  if (!found) return note_missing();
  for (auto known = known_.begin(); known != known_.end();) {
    const std::string name = (known++)->first;
    if (!found->contains(name)) remove_model(name);
  }
  const auto& chosen = source_.load_at_start;
  const bool all = source_.control != Control::kExplicit || std::ranges::find(chosen, "*") != chosen.end();
  for (auto& [name, files] : *found) {
    if (!all && std::ranges::find(chosen, name) == chosen.end())
      change([&](Catalogue& next) { next.models[name].repository = last_name(files.repository); });
    else if (const Status loaded = reconcile(name, std::move(files), look); !loaded)
      log::debug("{}", loaded.error().message);  // said in full where it happened
  }
  if (!all)
    for (const std::string& name : chosen)
      if (const auto known = known_.find(name); known != known_.end() && ensemble_of(known->second))
        load_parts(*ensemble_of(known->second));
  settle_ensembles();
  note_missing();
}

/// False: they are being written.
bool Repository::read_settings(const std::string& name, Known& known, const ModelFiles& files, Look look) {
  const bool first = known.settings && !*known.settings;
  const bool quiet = look != Look::kWatching || known.files.settings == files.settings;  // the same in two looks: nobody is writing it
  if (!quiet && first) return false;
  const bool same_place = known.files.policy == files.policy && known.files.labels == files.labels;
  if (!first && ((known.settings_read == files.settings && same_place) || !quiet)) return true;
  known.settings_read = files.settings;
  const auto before = known.settings ? *known.settings : nullptr;
  ModelSettings defaults = host_.defaults;
  if (files.policy) defaults.versions = *files.policy;
  defaults.labels.insert(files.labels.begin(), files.labels.end());
  auto settings =
      read_model_folder(files.folder, files.alone() ? "" : name, known.overrides ? known.overrides->config() : std::string(), defaults);
  if (!settings) {
    known.settings = settings.error().in(fmt::format("model '{}'", name));
  } else if (known.overrides && !known.overrides->may_read(settings->samples)) {
    known.settings = Error{Code::kInvalidArgument, fmt::format("model '{}': samples must lie among the files that were sent", name)};
  } else {
    known.settings = std::make_shared<const ModelSettings>(std::move(*settings));
  }
  if (before && known.settings && same_but_for_names(*before, **known.settings))
    relabel(name, before);
  else
    known.settings_loaded = files.settings;
  return true;
}

/// Loads what its settings choose of the versions that lie there, then lets go of what they do not.
Status Repository::reconcile(const std::string& name, ModelFiles files, Look look) {
  Known& known = known_[name];
  say_unreadable(fmt::format("model '{}'", name), known.unreadable, files.unreadable);
  if (!known.unreadable.empty()) return Error{Code::kUnavailable, fmt::format("model '{}': {}", name, known.unreadable)};
  const bool quiet_settings = read_settings(name, known, files, look);
  known.files = std::move(files);
  if (!quiet_settings) return {};
  if (known.files.versions.empty() && ensemble_of(known))
    known.files.versions[1].path = known.files.folder;  // it has no files, and git keeps no empty folders
  const std::vector<uint64_t> there = known.files.numbers();
  if (there.empty() && !known.said_no_version && look != Look::kOnce)
    log::warning("model '{}': {}", name, describe_no_version(known.files));
  known.said_no_version = there.empty();
  const std::vector<uint64_t> chosen = known.settings ? (*known.settings)->versions.choose(there) : there;
  // What is loaded stays: there is nothing in its place.
  if (chosen.empty() && look == Look::kAsked && source_.control == Control::kExplicit)
    return Error{Code::kInvalidArgument, fmt::format("model '{}': its settings choose none of its versions", name)};

  Status first;
  for (const uint64_t number : chosen) {
    KnownVersion& version = known.versions[number];
    const VersionFiles& lies = known.files.versions.at(number);
    const Fingerprint now = joined(lies.fingerprint, known.settings_loaded);
    const bool quiet = look != Look::kWatching || version.seen == now;
    version.seen = now;
    const auto held = entry(name, number);
    if (held && held->version && look != Look::kAsked) {
      say_unreadable(fmt::format("model '{}' version {}", name, number), version.unreadable, lies.unreadable);
      if (!version.unreadable.empty()) continue;  // what cannot be looked at is not gone, nor is it known to have changed
    }
    const bool failed = look == Look::kAsked && !(held && held->state == VersionState::kReady && held->reason.empty());
    if ((version.loaded == now && !failed) || !quiet) continue;
    version.loaded = now;
    version.moved = false;
    version.members.clear();
    if (ensemble_of(known)) continue;  // once all is there that it may be made of
    if (const Status loaded = load_version(name, number, known); !loaded && first) first = loaded;
  }
  const auto ready = [&](uint64_t number) {
    const auto held = entry(name, number);
    return held && held->version;
  };
  const bool replaced = std::ranges::all_of(chosen, ready), any = chosen.empty() || std::ranges::any_of(chosen, ready);
  for (auto version = known.versions.begin(); version != known.versions.end();) {
    const uint64_t number = (version++)->first;
    const bool gone =
        any && !known.files.versions.contains(number);  // who takes the newest away to go back needs it until the one before is there
    if (gone || (replaced && std::ranges::find(chosen, number) == chosen.end())) remove_version(name, number);
  }
  return first;
}

Status Repository::load_version(const std::string& name, uint64_t number, const Known& known) {
  VersionEntry held = entry(name, number).value_or(VersionEntry());
  if (!held.version) {
    held.state = VersionState::kLoading;
    update(name, number, held);
  }
  const std::string version = std::to_string(number), subject = fmt::format("model '{}' version {}", name, version);
  const VersionFiles& lies = known.files.versions.at(number);
  const std::string& path = lies.path;
  Result<std::shared_ptr<Version>> loaded = Error{Code::kInternal, ""};
  const auto load = [&]() -> Result<std::shared_ptr<Version>> {
    if (!known.settings) return known.settings.error();
    if (!lies.unreadable.empty()) return Error{Code::kUnavailable, lies.unreadable}.in(subject);
    if (ensemble_of(known)) return make_ensemble(name, number, **known.settings);
    auto file = known.files.folder.empty() ? Result<std::string>(path) : formats::find_model_file(path, (*known.settings)->file);
    if (!file) return file.error().in(subject);
    return Version::load(name, version, *file, **known.settings, host_, schedulers_);
  };
  if (const Status ended = guarded([&] { return loaded = load(), Status(); }); !ended) loaded = ended.error().in(subject);
  Status status;
  if (loaded) {
    held = {VersionState::kReady, "", *loaded, *known.settings};
    log::info("{}: ready", subject);
  } else {
    status = loaded.error();
    const std::string& message = loaded.error().message;
    held.reason = for_clients(for_clients(message, subject + ": ", path), "", known.files.folder);
    if (held.version && !has_members(*held.settings)) held.version = nullptr;  // what it was made of is not there any more
    if (!held.version) held.state = VersionState::kFailed;
    const bool serves_on = held.version && held.version->usable();
    log::error("{}{}", message, serves_on ? " (what was loaded before goes on serving)" : "");
  }
  update(name, number, std::move(held));
  return status;
}

/// Versions that have lost all their devices are loaded once more: there may be others. Ensembles after what they are made of.
void Repository::move_lost() {
  for (const bool ensembles : {false, true})
    for (auto& [name, known] : known_)
      if ((ensemble_of(known) != nullptr) == ensembles) move_lost(name, known);
}

void Repository::move_lost(const std::string& name, Known& known) {
  for (auto& [number, version] : known.versions) {
    const auto held = entry(name, number);
    if (version.moved || !held || !held->version || held->version->usable()) continue;
    version.moved = true;
    if (known.files.versions.contains(number)) (void)load_version(name, number, known);
    if (auto now = entry(name, number)) {
      now->moved = true;
      update(name, number, std::move(*now));
    }
  }
}

std::optional<VersionEntry> Repository::entry(const std::string& name, uint64_t number) const {
  const auto now = catalogue_.get();
  const auto model = now->models.find(name);
  if (model == now->models.end()) return std::nullopt;
  const auto held = model->second.versions.find(number);
  return held == model->second.versions.end() ? std::nullopt : std::optional(held->second);
}

void Repository::change(const std::function<void(Catalogue&)>& how) {
  auto next = std::make_shared<Catalogue>(*catalogue_.get());
  how(*next);
  catalogue_.publish(std::move(next));
}

void Repository::update(const std::string& name, uint64_t number, VersionEntry entry) {
  change([&](Catalogue& next) {
    const Known& known = known_[name];
    ModelEntry& model = next.models[name];
    model.repository = last_name(known.files.repository);
    model.versions[number] = std::move(entry);
    if (known.settings) model.labels = labels_now(model, (*known.settings)->labels);
  });
}

/// What is loaded stays, under the labels that its settings have now.
void Repository::relabel(const std::string& name, const std::shared_ptr<const ModelSettings>& before) {
  change([&](Catalogue& next) {
    const auto model = next.models.find(name);
    if (model == next.models.end()) return;
    const auto& now = *known_[name].settings;
    model->second.labels = labels_now(model->second, now->labels);
    for (auto& [number, entry] : model->second.versions)
      if (entry.settings == before) entry.settings = now;
  });
}

void Repository::remove_version(const std::string& name, uint64_t number) {
  log::info("model '{}' version {}: removed; requests under way are answered", name, number);
  change([&](Catalogue& next) {
    auto& versions = next.models[name].versions;
    versions.erase(number);
    if (versions.empty()) next.models.erase(name);
  });
  known_[name].versions.erase(number);
}

void Repository::remove_model(const std::string& name) {
  for (const auto& [number, version] : std::map(known_[name].versions)) remove_version(name, number);
  known_.erase(name);
}

}  // namespace serin::serving
