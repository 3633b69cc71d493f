// fingerprint.h: what folders and files look like from outside, so that whoever looks again knows whether anything was changed. Nothing is read.
//
// What is not there (any more) and what cannot be looked at are told apart: a permission that was taken away, or a mount that is gone for a moment, is no reason
// to stop serving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::serving {

/// Any difference means a change.
struct Fingerprint {
  std::vector<int64_t> parts;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// What lies right in a folder, sorted.
struct Listing {
  std::vector<std::string> folders, files;
};

/// kNotFound: there is no such folder; any other code: "cannot be listed: Permission denied".
Result<Listing> list_folder(const std::string& folder);

/// Looks at no more than so many files, models (.onnx) first. Of those behind them it is seen that they come, go or are replaced, not that they are written to.
class FingerprintMaker {
 public:
  explicit FingerprintMaker(size_t most_files) : left_(most_files) {}
  /// Files of one folder. An error where a model cannot be looked at: "'model.onnx' cannot be looked at: Permission denied".
  Status add_files(const std::string& folder, std::vector<std::string> names);
  /// A folder with the folders in it, for weights may lie there; or one file. Links to folders are followed once. Errors as above, and list_folder's; none where
  /// nothing is there.
  Status add(const std::string& path);
  Fingerprint take() { return std::move(made_); }

 private:
  void add_inner(const std::string& folder);

  size_t left_;
  Fingerprint made_;
};

}  // namespace serin::serving
