// file_image.cc: opens and reads a file, and keeps its bytes. Opening never waits (a FIFO has no writer yet), and only regular files are
// read.

#include "runtime/formats/onnx/file_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/formats/onnx/skim.h"

namespace serin::formats::onnx {
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
  while (!bytes.empty()) {
    const ssize_t n = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path_, "cannot be read");
    if (n == 0) return Error{Code::kCorrupt, fmt::format("{}: ends at byte {}, {} more are expected", path_, offset, bytes.size())};
    offset += static_cast<size_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status InputFile::unchanged() const {
  struct stat now{};
  if (::fstat(fd_, &now) != 0) return system_error(path_, "cannot be examined");
  if (now.st_size == status_.st_size && same_time(now.st_mtim, status_.st_mtim)) return {};
  return Error{Code::kUnavailable,
               fmt::format("{}: was written to since it was opened; write a new version beside it and rename it", path_)};
}

Status FileWindow::read(std::span<std::byte> bytes) const {
  const Status done = file->read(offset, bytes);
  SERIN_CHECK(file->unchanged());  // which also says why it may end too early
  return done;
}

FileImage::FileImage(std::shared_ptr<const std::byte> data, size_t size) : data_(std::move(data)), size_(size) {}
FileImage::FileImage(FileImage&&) noexcept = default;
FileImage::~FileImage() = default;

/// Memory for the file, which costs nothing before it is written.
Result<FileImage> FileImage::reserve(const InputFile& file, size_t limit) {
  const size_t size = file.size();
  if (size > limit) return Error{Code::kTooLarge, fmt::format("{}: {} bytes, over the limit of {}", file.path(), size, limit)};
  if (size == 0) return FileImage(nullptr, 0);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error(file.path(), fmt::format("{} bytes of memory are not available", size));
  const std::shared_ptr<std::byte> pages(static_cast<std::byte*>(memory), [size](std::byte* first) { ::munmap(first, size); });
  FileImage image(pages, size);
  image.pages_ = pages;
  return image;
}

Result<FileImage> FileImage::read(const std::string& path, size_t limit) {
  SERIN_TRY(const InputFile file, InputFile::open(path));
  SERIN_TRY(FileImage image, reserve(file, limit));
  SERIN_CHECK(file.read(0, {image.pages_.get(), image.size_}));
  SERIN_CHECK(file.unchanged());
  return image;
}

Result<FileImage> FileImage::read_model(const std::string& path, size_t limit) {
  SERIN_TRY(InputFile file, InputFile::open(path));
  SERIN_TRY(FileImage image, reserve(file, limit));
  SERIN_TRY(image.holes_, skim(file, {image.pages_.get(), image.size_}));
  SERIN_CHECK(file.unchanged());
  if (!image.holes_.empty()) image.file_ = std::make_shared<const InputFile>(std::move(file));
  return image;
}

Status FileImage::unchanged() const { return file_ ? file_->unchanged() : Status{}; }

std::optional<FileWindow> FileImage::left_out(Bytes bytes) const {
  const auto begin = static_cast<size_t>(bytes.data() - data_.get());
  const auto after = std::ranges::upper_bound(holes_, begin, {}, &Hole::begin);
  if (after == holes_.begin() || begin >= std::prev(after)->end) return std::nullopt;
  return FileWindow{file_, begin};
}

void FileImage::copy(Bytes bytes, std::byte* to) {
  std::memcpy(to, bytes.data(), bytes.size());
  release(bytes);
}

void FileImage::release(Bytes bytes) {
  if (!pages_) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto last = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace serin::formats::onnx
