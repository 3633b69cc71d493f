// model_folders.h: the models and versions in a folder, and when one of them is new and complete.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace serin::cli {

class ModelFolders {
 public:
  /// `memory`: a file that remembers which versions were seen, over restarts.
  ModelFolders(std::string folder, std::string memory) : folder_(std::move(folder)), memory_(std::move(memory)) {}

  /// {model: {number of a version: its stamp}}: what identifies its files and its settings. Folders whose names are no models are left out.
  using Versions = std::map<uint64_t, std::string>;
  Result<std::map<std::string, Versions>> list() const;

  /// kCorrupt: the file is damaged.
  Status remember();
  bool knows(const std::string& model) const { return seen_.contains(model); }
  /// From now on nothing in these versions is new.
  Status saw(const std::string& model, const Versions& versions);

  /// The highest version that was not seen as it is, once it has not changed since the call before.
  std::optional<uint64_t> fresh(const std::string& model, const Versions& versions);

  std::string path(const std::string& model, uint64_t version) const;

 private:
  std::string folder_, memory_;
  std::map<std::string, Versions> seen_, last_;
};

}  // namespace serin::cli
