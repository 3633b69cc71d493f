// folder_lock.h: one writer, or several readers, of a folder at a time.
//
// The lock is the kernel's (flock): it ends with its process, however that ends.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/result.h"

namespace serin::registry {

class FolderLock {
 public:
  enum class Mode { kShared, kExclusive };
  /// Locks the file `.lock` in the folder, and waits at most `seconds`. Errors: kUnavailable, "... is in use by another process";
  /// kPermissionDenied; kIo. A reader of a folder that it must not write to is not kept from reading.
  static Result<FolderLock> acquire(const std::string& folder, Mode mode, int seconds = 60);
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace serin::registry
