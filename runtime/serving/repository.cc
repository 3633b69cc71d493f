// repository.cc: scan, compare, load aside, publish. One thread does all of it, so that two loads never fight for memory.
//
// Polling instead of inotify: it sees network file systems, ConfigMap links and files replaced in place alike, and costs a few stat calls.

#include "runtime/serving/repository.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/base/log.h"
#include "runtime/base/number.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

// Decimal, no leading zero, not 0: what Triton and TensorFlow Serving users call a version.
std::optional<uint64_t> parse_version(std::string_view name) {
  if (name.empty() || name.front() == '0') return std::nullopt;
  return parse_number<uint64_t>(name);
}

bool is_model_name(std::string_view name) {
  const auto fine = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 256 && name.front() != '.' && std::ranges::all_of(name, fine);
}

void append_stat(const fs::path& path, std::vector<int64_t>& parts) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return parts.push_back(-1);
  parts.insert(parts.end(), {static_cast<int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                             status.st_ctim.tv_sec, status.st_ctim.tv_nsec});
}

/// Nothing where the folder cannot be listed, which is not the same as an empty one.
std::optional<std::vector<std::string>> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) names.push_back(entry->path().filename().string());
  }
  if (error) return std::nullopt;
  std::ranges::sort(names);
  return names;
}

/// What clients may know of a failure: its cause, not where on this machine the repository lies, nor what is said beside it anyway.
std::string for_clients(std::string message, std::string_view subject, const std::string& folder) {
  if (message.starts_with(subject)) message.erase(0, subject.size());
  for (size_t at = message.find(folder); at != std::string::npos; at = message.find(folder, at)) message.erase(at, folder.size());
  return message;
}

}  // namespace

std::shared_ptr<Version> ModelEntry::latest() const {
  for (auto entry = versions.rbegin(); entry != versions.rend(); ++entry)
    if (entry->second.version) return entry->second.version;
  return nullptr;
}

std::vector<std::string> ModelEntry::ready_versions() const {
  std::vector<std::string> ready;
  for (const auto& [number, entry] : versions)
    if (entry.version) ready.push_back(std::to_string(number));
  return ready;
}

Result<std::shared_ptr<Version>> Catalogue::find(std::string_view model, std::string_view version) const {
  const auto unknown = [&](std::string_view what) {
    return Error{Code::kNotFound, fmt::format("Request for unknown model: '{}'{} is not found", model, what)};
  };
  const auto not_ready = [&](uint64_t number, const VersionEntry& held) {
    const std::string_view why = held.state == VersionState::kLoading ? "it is being loaded" : std::string_view(held.reason);
    return Error{Code::kUnavailable, fmt::format("model '{}' version {} is not ready: {}", model, number, why)};
  };
  const auto entry = models.find(model);
  if (entry == models.end()) return unknown("");
  const auto& versions = entry->second.versions;
  if (version.empty()) {
    if (auto latest = entry->second.latest()) return latest;
    return not_ready(versions.rbegin()->first, versions.rbegin()->second);
  }
  const auto number = parse_version(version);
  const auto held = number ? versions.find(*number) : versions.end();
  if (held == versions.end()) return unknown(fmt::format(" version {}", version));
  if (held->second.version) return held->second.version;
  return not_ready(*number, held->second);
}

Result<std::string> Catalogue::version_of(std::string_view model, std::string_view label) const {
  const auto entry = models.find(model);
  if (entry != models.end()) {
    const auto found = entry->second.labels.find(label);
    if (found != entry->second.labels.end()) return std::to_string(found->second);
  }
  return Error{Code::kInvalidArgument, fmt::format("Unrecognized servable version label: {}", label)};
}

Status Catalogue::usable() const {
  for (const auto& [name, model] : models) {
    for (const auto& [number, entry] : model.versions) {
      if (!entry.version) continue;
      if (const Status usable = entry.version->usable(); !usable) return usable.error().in(entry.version->signature().model);
    }
  }
  return {};
}

Repository::Repository(std::string folder, std::chrono::milliseconds poll, Host& host)
    : folder_(std::move(folder)), poll_(poll), host_(host) {}

Result<std::unique_ptr<Repository>> Repository::open(std::string folder, std::chrono::milliseconds poll, Host& host) {
  std::error_code error;
  if (!fs::exists(folder, error)) return Error{Code::kNotFound, fmt::format("--models {}: no such folder", folder)};
  if (!fs::is_directory(folder, error)) return Error{Code::kInvalidArgument, fmt::format("--models {}: not a folder", folder)};
  std::unique_ptr<Repository> repository(new Repository(std::move(folder), poll, host));
  return repository;
}

void Repository::load() {
  scan(/*wait_for_quiet=*/false);
  if (catalogue_.get()->models.empty()) log::warning("{}: no model in it yet; expected <name>/<version>/model.onnx", folder_);
  thread_ = std::thread([this] { watch(); });
}

Repository::~Repository() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Repository::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, poll_, [this] { return stopping_; })) {
    lock.unlock();
    scan(/*wait_for_quiet=*/true);
    lock.lock();
  }
}

std::optional<std::map<Repository::Key, Repository::Fingerprint>> Repository::list() const {
  const auto warn_once = [this](const std::string& what) {
    if (!warned_[what]) log::warning("{}", what);
    warned_[what] = true;
  };
  const auto models = folder_names(folder_);
  if (!models) return std::nullopt;
  std::map<Key, Fingerprint> found;
  for (const std::string& model : *models) {
    if (!is_model_name(model)) {
      warn_once(fmt::format("{}: folder '{}' is left out: a model's name has letters, digits, '_', '-' and '.' only", folder_, model));
      continue;
    }
    const fs::path path = fs::path(folder_) / model;
    for (const std::string& name : folder_names(path).value_or(std::vector<std::string>())) {
      const auto number = parse_version(name);
      if (!number) {
        warn_once(fmt::format("model '{}': folder '{}' is left out: a version is a decimal number without leading zeros", model, name));
        continue;
      }
      Fingerprint fingerprint;
      append_stat(path / name / "model.onnx", fingerprint.parts);
      append_stat(path / "serin.yaml", fingerprint.parts);
      found[{model, *number}] = std::move(fingerprint);
    }
  }
  return found;
}

void Repository::scan(bool wait_for_quiet) {
  const auto found = list();
  if (listed_ != found.has_value())
    found ? log::info("{}: is there again", folder_) : log::error("{}: cannot be listed; what is loaded goes on serving", folder_);
  listed_ = found.has_value();
  if (!found) return;  // a mount that is gone for a moment, a folder that is being replaced: no reason to serve nothing
  for (const auto& [key, known] : std::map(known_))
    if (!found->contains(key)) remove(key);
  for (const auto& [key, fingerprint] : *found) {
    Known& known = known_[key];
    const bool quiet = !wait_for_quiet || known.seen == fingerprint;  // the same in two scans: nobody is writing it
    known.seen = fingerprint;
    const bool changed = known.loaded != fingerprint;
    const bool moves = !changed && !known.moved && has_lost_its_devices(key);
    if ((!changed && !moves) || !quiet) continue;
    known.loaded = fingerprint;
    known.moved = moves;
    load_version(key);
  }
}

bool Repository::has_lost_its_devices(const Key& key) const {
  const auto now = catalogue_.get();
  const auto model = now->models.find(key.first);
  if (model == now->models.end()) return false;
  const auto entry = model->second.versions.find(key.second);
  return entry != model->second.versions.end() && entry->second.version && !entry->second.version->usable();
}

void Repository::load_version(const Key& key) {
  const auto& [model, number] = key;
  const auto before = catalogue_.get();
  VersionEntry entry;
  if (const auto held = before->models.find(model); held != before->models.end() && held->second.versions.contains(number))
    entry = held->second.versions.at(number);
  if (!entry.version) {
    entry.state = VersionState::kLoading;
    update(key, entry);
  }

  const std::string version = std::to_string(number);
  const fs::path path = fs::path(folder_) / model;
  auto settings = read_model_settings(path / "serin.yaml", host_.defaults);
  auto loaded = settings ? Version::load(model, version, path / version / "model.onnx", *settings, host_)
                         : Result<std::shared_ptr<Version>>(settings.error());
  if (loaded) {
    entry = {VersionState::kReady, "", *loaded};
    log::info("model '{}' version {}: ready", model, version);
  } else {
    const std::string& message = loaded.error().message;
    entry.reason = for_clients(message, fmt::format("model '{}' version {}: ", model, version), folder_ + "/");
    if (!entry.version) entry.state = VersionState::kFailed;
    const bool serves_on = entry.version && entry.version->usable();
    log::error("{}{}", message, serves_on ? " (what was loaded before goes on serving)" : "");
  }
  update(key, std::move(entry), settings ? &settings->labels : nullptr);
}

void Repository::update(const Key& key, VersionEntry entry, const Labels* labels) {
  auto next = std::make_shared<Catalogue>(*catalogue_.get());
  ModelEntry& model = next->models[key.first];
  model.versions[key.second] = std::move(entry);
  if (labels) model.labels = *labels;
  catalogue_.publish(std::move(next));
}

void Repository::remove(const Key& key) {
  log::info("model '{}' version {}: removed; requests under way are answered", key.first, key.second);
  auto next = std::make_shared<Catalogue>(*catalogue_.get());
  auto& versions = next->models[key.first].versions;
  versions.erase(key.second);
  if (versions.empty()) next->models.erase(key.first);
  catalogue_.publish(std::move(next));
  known_.erase(key);
}

}  // namespace serin::serving
