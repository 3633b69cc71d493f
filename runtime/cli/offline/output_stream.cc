#include "runtime/cli/offline/output_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/file.h"

namespace serin::cli {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

Error output_error(const std::string& path, std::string_view step) {
  return {errno == EACCES || errno == EPERM ? Code::kPermissionDenied : Code::kIo,
          fmt::format("{}: {}: {}", path, step, std::strerror(errno))};
}

}  // namespace

Result<OutputStream> OutputStream::create(const std::string& path) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return output_error(path, "cannot be written");
  return OutputStream(path, std::move(temporary), file);
}

OutputStream::OutputStream(OutputStream&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_) {}

OutputStream::~OutputStream() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

Status OutputStream::write(std::string_view bytes) {
  buffer_ += bytes;
  size_ += bytes.size();
  return buffer_.size() < kBufferBytes ? Status() : flush();
}

Status OutputStream::flush() {
  if (!write_all(file_, buffer_)) return output_error(path_, "cannot be written");
  buffer_.clear();
  return {};
}

Status OutputStream::patch(uint64_t offset, std::string_view bytes) {
  SERIN_CHECK(flush());
  if (!write_at(file_, offset, bytes)) return output_error(path_, "cannot be written");
  return {};
}

Status OutputStream::finish() {
  SERIN_CHECK(flush());
  if (::fsync(file_) != 0) return output_error(path_, "cannot be written to disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return output_error(path_, "cannot be renamed");
  ::close(std::exchange(file_, -1));
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened >= 0) {  // so that the name is on disk, too
    ::fsync(opened);
    ::close(opened);
  }
  return {};
}

}  // namespace serin::cli
