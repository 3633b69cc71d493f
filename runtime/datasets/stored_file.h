// stored_file.h: a file that is read in parts. Internal to runtime/datasets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace serin::datasets {

/// Thread-safe. The file is not mapped: one that becomes shorter during a run is an error, not a signal.
class StoredFile {
 public:
  /// kNotFound, kPermissionDenied, kIo; kInvalidArgument: no regular file.
  static Result<std::unique_ptr<const StoredFile>> open(const std::string& path);
  /// A file without a name in the folder for temporary files, which is gone with this object. `write` gets its descriptor. `path`: for
  /// messages. kIo, and the errors of `write`.
  static Result<std::unique_ptr<const StoredFile>> without_name(const std::string& path, const std::function<Status(int)>& write);
  ~StoredFile();
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// kCorrupt if the file has fewer bytes than when it was opened.
  Status read(uint64_t offset, size_t bytes, char* to) const;
  Result<std::string> read(uint64_t offset, size_t bytes) const;

 private:
  StoredFile(std::string path, int descriptor, uint64_t size) : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  const std::string path_;
  const int descriptor_;
  uint64_t size_;
};

}  // namespace serin::datasets
