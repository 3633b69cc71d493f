// repository_control.cc: what clients ask of the repository where its control is explicit: load this model, take that one away.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model_config.pb.h"
#include "runtime/base/log.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {
namespace {

constexpr size_t kMostOrders = 1024;                   // waiting
constexpr size_t kMostWaitingBytes = size_t{1} << 30;  // of the files that came with them

Error not_explicit(Control control) {
  return {Code::kFailedPrecondition,
          fmt::format("models are loaded and unloaded on request where the model control is 'explicit', here it is '{}'{}",
                      control == Control::kPoll ? "poll" : "none",
                      control == Control::kPoll ? ": change the repository's folders, they are watched" : "")};
}

/// The models that an ensemble is made of.
std::set<std::string> parts_of(const ModelEntry& model) {
  std::set<std::string> parts;
  for (const auto& [number, entry] : model.versions)
    if (entry.settings && entry.settings->ensemble)
      for (const EnsembleStep& step : entry.settings->ensemble->steps) parts.insert(step.model);
  return parts;
}

}  // namespace

void Repository::give(std::function<Status()> work, Done done) {
  {
    const MutexLock lock(mutex_);
    if (orders_.size() < kMostOrders) {
      orders_.push_back([work = std::move(work), done] { done(guarded(work)); });
      done = nullptr;
    }
  }
  if (done) return done(Error{Code::kOverloaded, fmt::format("{} loads and unloads are waiting already", kMostOrders)});
  wake_.notify_all();
}

void Repository::load_model(std::string name, ModelOverride overrides, Done done) {
  if (source_.control != Control::kExplicit) return done(not_explicit(source_.control));
  size_t bytes = 0;
  for (const auto& [file, content] : overrides.files) bytes += content.size();
  const auto weight = std::shared_ptr<void>(this, [this, bytes](void*) { waiting_bytes_ -= bytes; });
  const size_t waiting = waiting_bytes_ += bytes;
  if (waiting > kMostWaitingBytes)
    return done(Error{Code::kOverloaded, "the files of loads that wait already take all the memory there is for them"});
  give([this, name = std::move(name), weight,
        held = std::make_shared<const ModelOverride>(std::move(overrides))] { return load_now(name, *held); },
       std::move(done));
}

void Repository::unload_model(std::string name, bool dependents, Done done) {
  if (source_.control != Control::kExplicit) return done(not_explicit(source_.control));
  give([this, name = std::move(name), dependents] { return unload_now(name, dependents); }, std::move(done));
}

/// It needs no version's folder.
bool Repository::may_be_ensemble(const ModelFiles& files, const std::string& config) const {
  const auto settings = read_model_folder(files.folder, "", config, host_.defaults);
  return settings && settings->ensemble;
}

/// Models that an ensemble runs come with it, as Triton has it. One that is not there is named by the ensemble, which is made when all the others are.
void Repository::load_parts(const EnsembleSettings& ensemble) {
  for (const EnsembleStep& step : ensemble.steps) {
    if (!is_model_name(step.model) || known_.contains(step.model)) continue;
    auto files = find(step.model);
    if (!files || (files->versions.empty() && !may_be_ensemble(*files, ""))) continue;
    (void)reconcile(step.model, std::move(*files), Look::kAsked);  // said where it happened
    if (const EnsembleSettings* own = ensemble_of(known_[step.model])) load_parts(*own);
  }
}

Status Repository::load_now(const std::string& name, const ModelOverride& overrides) {
  if (!is_model_name(name)) return find(name).error();  // it is nowhere
  const bool own_files = !overrides.files.empty();
  if (own_files && overrides.config.empty())
    return Error{Code::kInvalidArgument, fmt::format("failed to load '{}', files are taken together with their 'config' only", name)};
  SERIN_TRY(std::shared_ptr<const OverrideFolder> folder, OverrideFolder::write(overrides));

  ModelFiles files;
  if (own_files) {
    files = lister_.list_model(name, folder->path());
  } else {
    SERIN_TRY(files, find(name));
  }
  if (files.versions.empty() && !may_be_ensemble(files, overrides.config))
    return Error{Code::kInvalidArgument,
                 fmt::format("failed to load '{}', at least one version must be there: a folder '1' with a model", name)};

  Known& known = known_[name];
  const bool overridden = known.overrides && (!known.overrides->path().empty() || !known.overrides->config().empty());
  if (overridden || own_files || !overrides.config.empty())
    known.settings = std::shared_ptr<const ModelSettings>();  // read them anew, and load all anew
  const bool anew = known.settings && !*known.settings;
  if (anew)
    for (auto& [number, version] : known.versions) version.loaded.reset();
  const auto before = std::exchange(known.overrides, std::move(folder));  // until what is loaded from it is replaced
  Status loaded = reconcile(name, std::move(files), Look::kAsked);
  if (const EnsembleSettings* ensemble = ensemble_of(known)) load_parts(*ensemble);
  settle_ensembles();
  note_missing();
  if (loaded && ensemble_of(known) && !catalogue_.get()->find(name, "")) loaded = Error{Code::kInvalidArgument, "its steps do not run"};
  if (loaded) return loaded;
  if (own_files && !catalogue_.get()->find(name, ""))
    known_.erase(name);  // what was sent is of no use any more; the catalogue keeps the reason
  Error error = loaded.error();
  error.message = fmt::format("failed to load '{}', {}", name, reason_of(name));
  if (error.code == Code::kCorrupt || error.code == Code::kUnsupported) error.code = Code::kInvalidArgument;
  if (error.code == Code::kPermissionDenied) error.code = Code::kUnavailable;  // it was this server that was denied something
  return error;
}

/// Why a model is not what was asked for: each reason once, with the versions that have it.
std::string Repository::reason_of(const std::string& name) const {
  const auto now = catalogue_.get();
  const auto model = now->models.find(name);
  if (model == now->models.end()) return why_no_version(name);
  std::vector<std::pair<std::string_view, std::vector<uint64_t>>> reasons;
  for (const auto& [number, entry] : model->second.versions) {
    if (entry.reason.empty()) continue;
    auto known = std::ranges::find(reasons, entry.reason, [](const auto& reason) { return reason.first; });
    if (known == reasons.end()) known = reasons.insert(known, {entry.reason, {}});
    known->second.push_back(number);
  }
  std::vector<std::string> texts;
  texts.reserve(reasons.size());
  for (const auto& [why, versions] : reasons)
    texts.push_back(fmt::format("version{} {}: {}", versions.size() > 1 ? "s" : "", fmt::join(versions, ", "), why));
  return texts.empty() ? why_no_version(name) : fmt::format("{}", fmt::join(texts, "; "));
}

Status Repository::unload_now(const std::string& name, bool dependents) {
  const auto now = catalogue_.get();
  const auto model = now->models.find(name);
  if (model == now->models.end())
    return Error{Code::kNotFound, fmt::format("Request for unknown model: '{}' is not found", name.substr(0, 256))};
  const std::set<std::string> parts = dependents ? parts_of(model->second) : std::set<std::string>();
  log::info("model '{}': unloaded; requests under way are answered", name);
  change([&](Catalogue& next) {
    for (auto& [number, entry] : next.models[name].versions)
      entry = {.state = VersionState::kUnloaded,
               .reason = "unloaded",
               .version = nullptr,
               .settings = nullptr,
               .leaving = entry.version ? std::weak_ptr(entry.version) : entry.leaving};
  });
  known_.erase(name);
  settle_ensembles();
  for (const std::string& part : parts)
    if (const Status unloaded = unload_now(part, dependents); !unloaded) log::warning("model '{}': {}", name, unloaded.error().message);
  return {};
}

}  // namespace serin::serving
