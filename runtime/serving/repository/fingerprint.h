// fingerprint.h: records metadata of folders and files to detect changes, without reading file contents.
//
// It distinguishes a missing file from one that cannot be examined. A removed permission, or a mount that is absent for a moment, is no
// reason to stop serving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::serving {

/// Any difference means a change.
struct Fingerprint {
  std::vector<int64_t> parts;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Examines at most `most_files` files, models (.onnx) first. For the files beyond these, it notices creation, removal and replacement, but
/// not writes.
class FingerprintMaker {
 public:
  explicit FingerprintMaker(size_t most_files) : left_(most_files) {}
  /// Adds files of one folder. An error if a model cannot be examined: "'model.onnx' cannot be looked at: Permission denied".
  Status add_files(const std::string& folder, std::vector<std::string> names);
  /// Adds a folder with its subfolders, which may contain weights, or one file. Links to folders are followed once. Errors are as above and
  /// those of list_folder; a missing path is no error.
  Status add(const std::string& path);
  Fingerprint take() { return std::move(made_); }

 private:
  void add_inner(const std::string& folder);

  size_t left_;
  Fingerprint made_;
};

}  // namespace serin::serving
