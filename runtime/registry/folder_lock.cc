#include "runtime/registry/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace serin::registry {

Result<FolderLock> FolderLock::acquire(const std::string& folder, Mode mode, int seconds) {
  const std::string path = folder + "/.lock";
  const bool exclusive = mode == Mode::kExclusive;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const bool forbidden = errno == EACCES || errno == EROFS || errno == EPERM;
    if (!exclusive && forbidden) return FolderLock(-1);  // a registry that is mounted for reading
    return Error{forbidden ? Code::kPermissionDenied : Code::kIo, fmt::format("{} cannot be opened: {}", path, std::strerror(errno))};
  }
  FolderLock lock(fd);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (::flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Error{Code::kIo, fmt::format("{} cannot be locked: {}", path, std::strerror(errno))};
    if (std::chrono::steady_clock::now() >= end)
      return Error{Code::kUnavailable, fmt::format("{} is in use by another process for more than {} s", folder, seconds)};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace serin::registry
