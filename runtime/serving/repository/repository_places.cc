// repository_places.cc: what lies where models are served from, and what is missing there.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {

std::optional<ModelsByName> Repository::list() {
  ModelsByName all;
  for (const ModelRoot& root : roots_) {
    auto models = lister_.list_models(root, roots_);
    if (!models) {
      if (listed_) log::error("{}: {}; what is loaded goes on serving", root.path, models.error().message);
      listed_ = false;
      return std::nullopt;  // a mount that is gone for a moment, a folder that is being replaced: no reason to serve nothing
    }
    for (auto& [name, files] : *models) {
      const auto [held, is_new] = all.try_emplace(name, std::move(files));
      if (!is_new)
        lister_.remarks.say(fmt::format("model '{}' of {} is left out: {} has one, too", name, root.path, held->second.repository));
    }
  }
  if (!listed_) log::info("all places can be listed again");
  listed_ = true;
  return all;
}

/// In the first place that has it; nothing else is looked at, for there may be thousands.
Result<ModelFiles> Repository::find(const std::string& name) {
  for (const ModelRoot& root : roots_) {
    auto files = lister_.find_model(root, name);
    if (files) return files;
    if (files.error().code != Code::kNotFound)
      return Error{Code::kUnavailable, fmt::format("failed to load '{}', {}", name.substr(0, 256), files.error().message)};
  }
  return Error{Code::kNotFound, fmt::format("failed to load '{}', failed to poll from model repository: no folder of it has that name",
                                            name.substr(0, 256))};
}

bool Repository::has_version(const std::string& name) const {
  const auto now = catalogue_.get();
  const auto model = now->models.find(name);
  return model != now->models.end() && !model->second.versions.empty();
}

/// What clients may know of a failure: its cause, not where on this machine the repository lies, nor what is said beside it anyway.
std::string Repository::for_clients(std::string message, std::string_view subject, const std::string& folder) {
  if (message.starts_with(subject)) message.erase(0, subject.size());
  const std::string place = folder.empty() || folder.ends_with('/') ? folder : folder + "/";
  for (size_t at = message.find(place); !place.empty() && at != std::string::npos; at = message.find(place, at))
    message.erase(at, place.size());
  std::ranges::replace(message, '\n', ' ');  // of a library
  return message;
}

std::string Repository::why_no_version(const std::string& name) const {
  const auto found = known_.find(name);
  if (found == known_.end()) return "it has no version";
  const Known& known = found->second;
  if (!known.unreadable.empty()) return known.unreadable;
  if (!known.settings) return for_clients(known.settings.error().message, fmt::format("model '{}': ", name), known.files.folder);
  if (!*known.settings) return "it is being written";
  if (!known.files.versions.empty()) return "its settings choose none of its versions";
  return describe_no_version(known.files);
}

/// Models that were found, or named, and have no version: not even one that failed.
std::map<std::string, std::string> Repository::missing() const {
  std::map<std::string, std::string> missing;
  for (const auto& [name, known] : known_)
    if (!has_version(name)) missing[name] = why_no_version(name);
  for (const ModelRoot& root : absent_) missing.try_emplace(root.name, "its folder is not there yet");
  const auto now = catalogue_.get();
  for (const std::string& name : source_.load_at_start)
    if (name != "*" && !now->models.contains(name)) missing.try_emplace(name, "is to be loaded at the start, but is not there");
  return missing;
}

/// For readiness: a server that has nothing of what it should have is not ready, though nothing of it failed.
void Repository::note_missing() {
  const auto now = catalogue_.get();
  if (std::ranges::any_of(now->models, [](const auto& model) { return model.second.latest() != nullptr; })) return;
  std::string first;
  if (const auto without = missing(); !without.empty())
    first = fmt::format("model '{}': {}", without.begin()->first, without.begin()->second);
  else if (!listed_)
    first = "the place that models lie in cannot be listed";
  if (now->missing != first) change([&](Catalogue& next) { next.missing = first; });
}

}  // namespace serin::serving
