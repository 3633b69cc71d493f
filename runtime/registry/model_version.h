// model_version.h: a version of a model in the registry, and how it is named.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::registry {

/// A version of a model: by its number, a tag, the digest of its manifest, or `latest`: the highest number that is not retired.
struct Reference {
  std::string model, version = "latest";
  /// "digits", "digits:3", "digits:production" or "digits@sha256:...". kInvalidArgument, with the rule for names.
  static Result<Reference> parse(std::string_view text);
  std::string str() const;
};

struct StoredFile {
  std::string path;  ///< in the folder of the version
  std::string digest;
  uint64_t bytes = 0;
  bool settings = false;  ///< serin.yaml, which lies next to the folder
};

struct Report {
  std::string title, digest, added;  ///< name of its file; digest of its contents; time
  uint64_t bytes = 0;
};

using Origin = std::map<std::string, std::string>;  ///< "commit", "job", "image", "data" or any other key

struct Version {
  uint64_t number = 0;
  std::string digest;     ///< of the manifest
  std::string content;    ///< of the names and contents of the files alone: equal for equal models
  std::string added, by;  ///< time (RFC 3339, UTC) and person or program
  std::string details;    ///< JSON object that add() was given, such as inputs and outputs
  Origin origin;
  std::vector<StoredFile> files;
  std::vector<std::string> tags;
  std::optional<std::string> retired;  ///< the reason
  std::vector<Report> reports;
  uint64_t bytes() const;
};

}  // namespace serin::registry
