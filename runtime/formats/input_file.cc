// input_file.cc: opens and reads a file. Opening never waits (a FIFO has no writer yet), and only regular files are read.

#include "runtime/formats/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/file.h"

namespace serin::formats {
namespace {

std::string_view kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "not a regular file";
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

Error system_error(const std::string& path, std::string_view step) {
  const int code = errno;
  const Code kind = code == ENOENT || code == ENOTDIR                        ? Code::kNotFound
                    : code == EACCES || code == EPERM                        ? Code::kPermissionDenied
                    : code == ENXIO || code == ELOOP || code == ENAMETOOLONG ? Code::kInvalidArgument
                                                                             : Code::kIo;
  return Error{kind, fmt::format("{}: {}: {}", path, step, std::strerror(code))};
}

Result<InputFile> InputFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return Error{Code::kInvalidArgument, "a path with a NUL byte"};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error(path, "cannot be opened");
  return adopt(fd, path);
}

Result<InputFile> InputFile::adopt(int fd, std::string path) {
  InputFile file(fd, std::move(path), {});
  if (::fstat(fd, &file.status_) != 0) return system_error(file.path_, "cannot be examined");
  const mode_t mode = file.status_.st_mode;
  if (!S_ISREG(mode)) return Error{Code::kInvalidArgument, fmt::format("{}: is {}", file.path_, kind_of_file(mode))};
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), status_(other.status_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status InputFile::read(size_t offset, std::span<std::byte> bytes) const {
  const auto got = read_at(fd_, offset, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
  if (!got) return system_error(path_, "cannot be read");
  if (*got < bytes.size())
    return Error{Code::kCorrupt, fmt::format("{}: ends at byte {}, {} more are expected", path_, offset + *got, bytes.size() - *got)};
  return {};
}

Result<std::vector<std::byte>> InputFile::read_all(size_t limit) const {
  if (size() > limit) return Error{Code::kTooLarge, fmt::format("{}: has {} bytes, at most {} are read", path_, size(), limit)};
  std::vector<std::byte> bytes(size());
  SERIN_CHECK(read(0, bytes));
  SERIN_CHECK(unchanged());
  return bytes;
}

Status InputFile::unchanged() const {
  struct stat now{};
  if (::fstat(fd_, &now) != 0) return system_error(path_, "cannot be examined");
  if (now.st_size == status_.st_size && same_time(now.st_mtim, status_.st_mtim)) return {};
  return Error{Code::kUnavailable,
               fmt::format("{}: was written to since it was opened; write a new version next to it and rename it", path_)};
}

Status FileWindow::read(std::span<std::byte> bytes) const {
  Status done = file->read(offset, bytes);
  SERIN_CHECK(file->unchanged());  // which also says why it may end too early
  return done;
}

}  // namespace serin::formats
