// lock_file.cc: locks and unlocks the file of a store. The file remains when its owner ends. Removing it would let two routers lock two
// files of the same name.

#include "router/store/lock_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

namespace serin::store {
namespace {

/// " (pid 4711)", or nothing where the file does not say.
std::string owner(int fd) {
  char text[32] = {};
  const ssize_t n = ::pread(fd, text, sizeof(text) - 1, 0);
  std::string pid;
  for (ssize_t i = 0; i < n && std::isdigit(static_cast<unsigned char>(text[i])); ++i) pid += text[i];
  return pid.empty() ? "" : fmt::format(" (pid {})", pid);
}

}  // namespace

Result<LockFile> LockFile::acquire(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) {
    const Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::kPermissionDenied
                      : errno == ENOENT                                   ? Code::kNotFound
                                                                          : Code::kIo;
    return Error{code, fmt::format("lock file {} cannot be opened: {}", path, std::strerror(errno))};
  }
  LockFile lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Error{Code::kIo, fmt::format("lock file {} cannot be locked: {}", path, std::strerror(errno))};
    return Error{Code::kAlreadyExists,
                 fmt::format("{} is locked by another router{}; give each router a store of its own", path, owner(fd))};
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return Error{Code::kIo, fmt::format("lock file {} cannot be written: {}", path, std::strerror(errno))};
  return lock;
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace serin::store
