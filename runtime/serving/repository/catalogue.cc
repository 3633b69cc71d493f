#include "runtime/serving/repository/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "runtime/base/nearest_name.h"

namespace serin::serving {
namespace {

Error unknown(std::string_view model, std::string_view what) {
  return {Code::kNotFound, fmt::format("Request for unknown model: '{}'{} is not found", model, what)};
}

Error not_ready(std::string_view model, uint64_t number, const VersionEntry& held) {
  const std::string_view why = held.state == VersionState::kLoading ? "it is being loaded" : std::string_view(held.reason);
  return {Code::kUnavailable, fmt::format("model '{}' version {} is not ready: {}", model, number, why)};
}

}  // namespace

std::shared_ptr<Version> ModelEntry::latest() const {
  for (auto entry = versions.rbegin(); entry != versions.rend(); ++entry)
    if (entry->second.version) return entry->second.version;
  return nullptr;
}

bool ModelEntry::away() const {
  return std::ranges::all_of(versions, [](const auto& held) { return held.second.state == VersionState::kUnloaded; });
}

std::vector<std::string> ModelEntry::ready_versions() const {
  std::vector<std::string> ready;
  for (const auto& [number, entry] : versions)
    if (entry.version) ready.push_back(std::to_string(number));
  return ready;
}

Result<std::shared_ptr<Version>> Catalogue::find(std::string_view model, std::string_view version) const {
  const auto entry = models.find(model);
  if (entry == models.end()) {
    Error error = unknown(model, "");
    if (const auto meant = nearest_name(model, std::views::keys(models)); !meant.empty())
      error.message += fmt::format("; did you mean '{}'?", meant);
    return error;
  }
  const auto& versions = entry->second.versions;
  // To clients a model is not there until somebody loads it, as Triton has it.
  if (versions.empty() || (version.empty() && entry->second.away()))
    return Error{Code::kNotFound, fmt::format("Request for unknown model: '{}' has no available versions: it is {}", model,
                                              versions.empty() ? "not loaded" : "unloaded")};
  if (version.empty()) {
    if (auto latest = entry->second.latest()) return latest;
    return not_ready(model, versions.rbegin()->first, versions.rbegin()->second);
  }
  const auto number = parse_version(version);
  if (!number || (*number == 0 && !versions.contains(0)))  // TensorFlow Serving has such a version, Triton never
    return Error{Code::kNotFound, fmt::format("failed to get model version from specified version string '{}': a version is a whole number",
                                              version.substr(0, 256))};
  const auto held = versions.find(*number);
  if (held == versions.end()) {
    Error error = unknown(model, fmt::format(" version {}", version));
    error.message += fmt::format("; ready are: {}", fmt::join(entry->second.ready_versions(), ", "));
    return error;
  }
  if (held->second.version) return held->second.version;
  return not_ready(model, *number, held->second);
}

Result<std::string> Catalogue::version_of(std::string_view model, std::string_view label) const {
  const auto entry = models.find(model);
  if (entry != models.end()) {
    const auto found = entry->second.labels.find(label);
    if (found != entry->second.labels.end()) return std::to_string(found->second);
  }
  return Error{Code::kInvalidArgument, fmt::format("Unrecognized servable version label: {}", label)};
}

Status Catalogue::live(engine::Devices* devices) const {
  for (const auto& [name, model] : models) {
    for (const auto& [number, entry] : model.versions) {
      if (!entry.version || entry.settings->ensemble) continue;  // members speak for an ensemble
      const Status usable = entry.version->usable();
      const bool may_move = !usable && !entry.moved && devices && devices->choose(entry.settings->device);
      if (!usable && !may_move) return usable.error().in(entry.version->signature().model);
    }
  }
  return {};
}

Status Catalogue::ready(std::string_view model, std::string_view version) const {
  const auto found = find(model, version);
  if (found) return (*found)->usable();
  Error error = found.error();
  if (const auto entry = models.find(model); entry != models.end() && entry->second.away()) error.code = Code::kUnavailable;
  return error;
}

Status Catalogue::loaded(bool all) const {
  Status failed;
  bool any = false;
  for (const auto& [name, model] : models) {
    for (const auto& [number, entry] : model.versions) {
      if (entry.version && !all) return {};
      any |= entry.version != nullptr;
      if (!entry.version && entry.state != VersionState::kUnloaded && failed) failed = not_ready(name, number, entry);
    }
  }
  if (failed && !any && !missing.empty()) return Error{Code::kUnavailable, missing};
  return failed;
}

}  // namespace serin::serving
