// catalogue.h: what is loaded right now, by model and version. Immutable; the repository publishes a new one for every change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/repository/version.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

enum class VersionState : uint8_t { kLoading, kReady, kFailed, kUnloaded };

struct VersionEntry {
  VersionState state = VersionState::kLoading;
  std::string reason;                             ///< of kFailed; also set beside kReady when a newer file under that number is broken
  std::shared_ptr<Version> version;               ///< set where it is ready
  std::shared_ptr<const ModelSettings> settings;  ///< that it was loaded with
  std::weak_ptr<Version> leaving;                 ///< of kUnloaded: while it lives, requests under way are answered
  bool moved = false;                             ///< it had lost its devices, and was loaded once more where there were others
};

struct ModelEntry {
  std::map<uint64_t, VersionEntry> versions;  ///< none: it lies there, and nobody asked to load it
  Labels labels;                              ///< of versions
  std::string repository;                     ///< the folder it lies in, by its last name
  /// The highest ready version: what a request without a version gets. Null: none is ready.
  std::shared_ptr<Version> latest() const;
  /// Nobody asked to load it, or it was unloaded since.
  bool away() const;
  /// The numbers of those that are ready, rising.
  std::vector<std::string> ready_versions() const;
};

struct Catalogue {
  std::map<std::string, ModelEntry, std::less<>> models;
  std::string missing;  ///< the first of what was found or named and has no version that could be loaded, and why; empty: nothing
  /// That version, ready to run; `version` empty: the latest. kNotFound, kUnavailable (and why).
  Result<std::shared_ptr<Version>> find(std::string_view model, std::string_view version) const;
  /// The number behind a label, whether or not that version is there. kInvalidArgument: the model, if it is one, has no such label.
  Result<std::string> version_of(std::string_view model, std::string_view label) const;
  /// kUnavailable where a version that is loaded can answer nothing any more (Version::usable), and there are no devices left that it may still be moved to.
  Status live(engine::Devices* devices) const;
  /// Whether that version answers now. kUnavailable: it is known and does not, and why; kNotFound.
  Status ready(std::string_view model, std::string_view version) const;
  /// kUnavailable, naming the first that failed, where none of what was to be loaded is; `all`: where any of it is not. What was unloaded does not count, and
  /// where there is nothing to load nothing is wrong.
  Status loaded(bool all) const;
};

/// Decimal, no leading zero: what Triton and TensorFlow Serving users call a version.
std::optional<uint64_t> parse_version(std::string_view name);

}  // namespace serin::serving
