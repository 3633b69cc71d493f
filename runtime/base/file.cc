// file.cc: reads and writes files by plain system calls, because iostreams hide which step failed and why.

#include "runtime/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace serin {
namespace {

constexpr int kPatienceMs = 10'000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error(const std::string& path, std::string_view step) {
  const int code = errno;
  const Code kind = code == ENOENT ? Code::kNotFound : (code == EACCES || code == EPERM) ? Code::kPermissionDenied : Code::kIo;
  return Error{kind, fmt::format("{}: {}: {}", path, step, std::strerror(code))};
}

Result<std::string> read_pipe(const Descriptor& pipe, const std::string& path, size_t limit) {
  std::string contents;
  std::array<char, 4096> part;
  while (contents.size() <= limit) {
    const ssize_t n = ::read(pipe.get(), part.data(), part.size());
    if (n == 0) return contents;  // nobody writes to it any more
    if (n > 0) {
      contents.append(part.data(), static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd more{.fd = pipe.get(), .events = POLLIN, .revents = 0};
      const int ready = ::poll(&more, 1, kPatienceMs);
      if (ready == 0) return Error{Code::kDeadlineExceeded, fmt::format("{}: the program that writes to it has stopped", path)};
      if (ready < 0 && errno != EINTR) return system_error(path, "cannot be waited for");
    } else if (errno != EINTR) {
      return system_error(path, "cannot be read");
    }
  }
  return Error{Code::kTooLarge, fmt::format("{}: over the limit of {} bytes", path, limit)};
}

Result<std::string> read(const std::string& path, size_t limit, bool may_be_pipe) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // O_NONBLOCK: opening a FIFO must not wait for its writer
  if (file.get() < 0) return system_error(path, "cannot be opened");
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return system_error(path, "cannot be examined");
  if (may_be_pipe && S_ISFIFO(status.st_mode)) return read_pipe(file, path, limit);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalidArgument, fmt::format("{}: not a regular file", path)};
  if (static_cast<size_t>(status.st_size) > limit)
    return Error{Code::kTooLarge, fmt::format("{}: {} bytes, over the limit of {}", path, status.st_size, limit)};
  std::string contents(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::read(file.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, "cannot be read");
    if (n == 0) break;  // it shrank while it was read: what is there is what we have
    done += static_cast<size_t>(n);
  }
  contents.resize(done);
  return contents;
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t limit) { return read(path, limit, false); }

Result<std::string> read_secret_file(const std::string& path, size_t limit) {
  SERIN_TRY(std::string text, read_file(path, limit));
  struct stat file{};
  if (::stat(path.c_str(), &file) == 0 && (file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error{Code::kPermissionDenied,
                 fmt::format("{}: users other than the owner may read this secret (mode {:o}): chmod 600 it", path, file.st_mode & 0777U)};
  return text;
}

Result<std::vector<std::string>> read_lines(const std::string& path, size_t limit) {
  SERIN_TRY(const std::string text, read_file(path, limit));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

Result<std::string> read_file_or_pipe(const std::string& path, size_t limit) { return read(path, limit, true); }

FileStamp FileStamp::of(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return {};
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return {file.st_dev, file.st_ino, static_cast<uint64_t>(file.st_size), nanoseconds(file.st_mtim), nanoseconds(file.st_ctim)};
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool write_at(int descriptor, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<char> bytes) {
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::pread(descriptor, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

Status write_file_atomically(const std::string& path, std::string_view contents, unsigned mode) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (file.get() < 0) return system_error(temporary, "cannot be created");
    if (!write_all(file.get(), contents)) return system_error(temporary, "cannot be written");
    if (::fsync(file.get()) != 0) return system_error(temporary, "cannot be flushed to disk");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path, "cannot be replaced");
  return {};
}

std::string program_folder() {
  std::string path(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return ".";
  path.resize(static_cast<size_t>(n));
  return path.substr(0, path.rfind('/'));
}

}  // namespace serin
