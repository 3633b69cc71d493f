// catalogue.h: the loaded models and versions. Immutable; the repository publishes a new catalogue for every change.
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
#include "runtime/serving/settings/model_folder.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

enum class VersionState : uint8_t { kLoading, kReady, kFailed, kUnloaded };

struct VersionEntry {
  VersionState state = VersionState::kLoading;
  std::string reason;                             ///< for kFailed; also set with kReady if a newer file under that number is invalid
  std::shared_ptr<Version> version;               ///< set if it is ready
  std::shared_ptr<const ModelSettings> settings;  ///< the settings that it was loaded with
  std::weak_ptr<Version> leaving;                 ///< for kUnloaded: while it exists, requests in progress are answered
  bool moved = false;                             ///< it had lost its devices and was loaded again on others
};

struct ModelEntry {
  std::map<uint64_t, VersionEntry> versions;  ///< none: the model exists on disk, but was not requested
  Labels labels;                              ///< labels of versions
  std::string repository;                     ///< last name of the folder that contains it
  /// The highest ready version, for requests without a version. Null: none is ready.
  std::shared_ptr<Version> latest() const;
  /// It was not requested, or it has been unloaded.
  bool away() const;
  /// The numbers of the ready versions, rising.
  std::vector<std::string> ready_versions() const;
};

struct Catalogue {
  std::map<std::string, ModelEntry, std::less<>> models;
  std::string missing;  ///< the first found or named model without a loadable version, with the reason; empty: none
  /// Returns that version, ready to run; `version` empty: the latest. kNotFound, kUnavailable (with the reason).
  Result<std::shared_ptr<Version>> find(std::string_view model, std::string_view version) const;
  /// The number behind a label, even if that version does not exist. kInvalidArgument: the model exists but has no such label.
  Result<std::string> version_of(std::string_view model, std::string_view label) const;
  /// kUnavailable if a loaded version cannot answer any longer (Version::usable) and no device is left that it could move to.
  Status live(engine::Devices* devices) const;
  /// Whether that version answers now. kNotFound, or kUnavailable with the reason if it is known but does not answer.
  Status ready(std::string_view model, std::string_view version) const;
  /// kUnavailable, naming the first failure, if no requested model is loaded; with `all`, if any of them is not. Unloaded models do not
  /// count. If there is nothing to load, it succeeds.
  Status loaded(bool all) const;
};

}  // namespace serin::serving
