#include "runtime/registry/chunked_blob.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/registry/chunk_plan.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {
ChunkedBlob::ChunkedBlob(std::string path, uint64_t bytes, std::string states, int fd)
    : path_(std::move(path)), bytes_(bytes), fd_(fd), states_(std::move(states)) {}

ChunkedBlob::~ChunkedBlob() {
  if (fd_ >= 0) ::close(fd_);
}

Error ChunkedBlob::failed() const { return io_error(unfinished(), {errno, std::generic_category()}); }

std::shared_ptr<ChunkedBlob> ChunkedBlob::whole(const std::string& path, uint64_t bytes) {
  return std::shared_ptr<ChunkedBlob>(new ChunkedBlob(path, bytes, std::string(chunk_count(bytes), kRead), -1));
}

Result<std::shared_ptr<ChunkedBlob>> ChunkedBlob::open(const std::string& path, uint64_t bytes) {
  const int fd = ::open((path + ".chunks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  std::string states(chunk_count(bytes), kMissing);
  std::shared_ptr<ChunkedBlob> blob(new ChunkedBlob(path, bytes, std::move(states), fd));
  if (fd < 0) return blob->failed();
  struct stat found{};
  if (::fstat(fd, &found) != 0) return blob->failed();
  const MutexLock lock(blob->mutex_);
  std::string& letters = blob->states_;
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size == bytes) {
    std::ranges::fill(letters, kTaken);  // killed within finish()
  } else if (size == bytes + letters.size()) {
    if (!read_at(fd, bytes, letters)) return blob->failed();
    std::ranges::replace_if(letters, [](char state) { return state != kRead && state != kTaken; }, kMissing);
  } else if (::ftruncate(fd, 0) != 0) {
    return blob->failed();
  }
  if (!write_at(fd, bytes, letters)) return blob->failed();
  return blob;
}

std::string ChunkedBlob::states() const {
  const MutexLock lock(mutex_);
  return states_;
}

Status ChunkedBlob::write(uint64_t at, std::string_view bytes) const {
  if (!write_at(fd_, at, bytes)) return failed();
  return {};
}

Status ChunkedBlob::put(size_t chunk, char state) {
  const MutexLock lock(mutex_);
  states_[chunk] = state;
  if (!write_at(fd_, bytes_ + chunk, {&state, 1})) return failed();
  return {};
}

Result<std::string> ChunkedBlob::read(size_t chunk) const {
  const Span span = chunk_span(bytes_, chunk);
  std::string bytes(span.to - span.from, '\0');
  const int fd = fd_ >= 0 ? fd_ : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return io_error(path_, {errno, std::generic_category()});
  const auto got = read_at(fd, span.from, bytes);
  Error error = io_error(path_, {errno, std::generic_category()});
  if (fd_ < 0) ::close(fd);
  if (!got) return error;
  if (*got < bytes.size()) return Error{Code::kNotFound, fmt::format("{}: is shorter than it was", path_)};
  return bytes;
}

Result<std::string> ChunkedBlob::digest() const {
  Sha256 sum;
  for (size_t chunk = 0; chunk < chunk_count(bytes_); ++chunk) {
    SERIN_TRY(const std::string piece, read(chunk));
    sum.add(piece);
  }
  return sum.take();
}

Status ChunkedBlob::finish() {
  if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 || ::fsync(fd_) != 0) return failed();
  if (::rename(unfinished().c_str(), path_.c_str()) != 0) return failed();
  const MutexLock lock(mutex_);
  std::ranges::fill(states_, kRead);
  return {};
}

void ChunkedBlob::remove() const { ::unlink(unfinished().c_str()); }

}  // namespace serin::registry
