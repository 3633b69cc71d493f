// part_file.h: the beginning of a file that is being downloaded, and the digest of it. It outlives a process that is killed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {

class PartFile {
 public:
  /// Makes it, or reads what is there of it; one with more than `most` bytes begins again. Errors: kPermissionDenied, kIo, with the path.
  static Result<PartFile> open(std::string path, uint64_t most);
  PartFile(PartFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_), sum_(std::move(other.sum_)) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  uint64_t bytes() const { return bytes_; }
  Status append(std::string_view bytes);
  Status restart();                      ///< without its bytes
  std::string digest();                  ///< of all bytes; append() must not follow
  Status finish(const std::string& to);  ///< onto the disk, and under that name
  void remove();

 private:
  PartFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Error failed() const;

  std::string path_;
  int fd_;
  uint64_t bytes_ = 0;
  Sha256 sum_;
};

}  // namespace serin::registry
