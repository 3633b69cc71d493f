// lock_file.h: Allows only one router for each store.
//
// The lock is the kernel's (flock), so that it ends with its process however that ends. The pid in the file is for operators.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.h"

namespace serin::store {

class LockFile {
 public:
  /// kAlreadyExists if another process has it: "... is locked by another router (pid 4711)".
  static Result<LockFile> acquire(const std::string& path);
  LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  LockFile& operator=(LockFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~LockFile();

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace serin::store
