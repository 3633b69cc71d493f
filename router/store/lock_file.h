// lock_file.h: one router for each store. The lock is the kernel's (flock), so that it ends with its process however that ends; the pid inside
// the file is for people.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.h"

namespace serin::store {

class LockFile {
 public:
  /// kAlreadyExists where another process holds it: "... is locked by another router (pid 4711)".
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
