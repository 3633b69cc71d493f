#include "runtime/cli/offline/block_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/datasets/stored_file.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFrameHead = 20;  // block: 8 bytes, size: 8, CRC-32 of both and of the payload: 4
constexpr std::string_view kEnding = ".blocks", kLockName = "complete.lock";

Error store_error(const std::string& path, std::string_view step) {
  return {errno == EACCES || errno == EPERM ? Code::kPermissionDenied : Code::kIo,
          fmt::format("{}: {}: {}", path, step, std::strerror(errno))};
}

Error of_another_run(const std::string& path) {
  return {Code::kFailedPrecondition,
          fmt::format("{} belongs to another run: the model, the data, the flags or the program are not the same; remove {} to begin anew",
                      path, fs::path(path).parent_path().string())};
}

std::array<char, kFrameHead> frame_head(int64_t block, std::string_view payload) {
  std::array<char, kFrameHead> head{};
  const uint64_t bytes = payload.size();
  std::memcpy(head.data(), &block, sizeof block);
  std::memcpy(head.data() + 8, &bytes, sizeof bytes);
  uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(head.data()), 16);
  crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(payload.data()), payload.size());
  const auto narrow = static_cast<uint32_t>(crc);
  std::memcpy(head.data() + 16, &narrow, sizeof narrow);
  return head;
}

}  // namespace

Result<std::unique_ptr<BlockStore>> BlockStore::open(const std::string& folder, const std::string& description, const Shard& shard) {
  std::error_code failure;
  fs::create_directory(folder, failure);  // not its parents: a misspelled place is an error
  if (failure) return Error{Code::kIo, fmt::format("{}: cannot be made: {}", folder, failure.message())};
  std::unique_ptr<BlockStore> store(new BlockStore(folder, description + "\n"));
  {
    const MutexLock lock(store->mutex_);
    SERIN_CHECK(store->open_own(shard));
  }
  SERIN_CHECK(store->look_again());
  return store;
}

Status BlockStore::open_own(const Shard& shard) {
  own_path_ = (fs::path(folder_) / fmt::format("{}-of-{}{}", shard.number, shard.count, kEnding)).string();
  own_ = ::open(own_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (own_ < 0) return store_error(own_path_, "cannot be opened");
  if (::flock(own_, LOCK_EX | LOCK_NB) != 0)
    return Error{Code::kFailedPrecondition, fmt::format("{}: another process is computing this shard", own_path_)};
  SERIN_TRY(own_file_, datasets::StoredFile::open(own_path_));
  struct stat facts{};
  if (::fstat(own_, &facts) != 0) return store_error(own_path_, "cannot be read");
  if (static_cast<size_t>(facts.st_size) < description_.size()) {  // new, or the first line was cut off
    SERIN_TRY(const auto file, datasets::StoredFile::open(own_path_));
    SERIN_TRY(const std::string begun, file->read(0, static_cast<size_t>(file->size())));
    if (!description_.starts_with(begun)) return of_another_run(own_path_);
    if (!write_at(own_, 0, description_)) return store_error(own_path_, "cannot be written");
    own_size_ = description_.size();
    return {};
  }
  SERIN_TRY(own_size_, scan(own_path_, /*own=*/true));
  if (::ftruncate(own_, static_cast<off_t>(own_size_)) != 0) return store_error(own_path_, "cannot be cut");
  return {};
}

BlockStore::~BlockStore() {
  const MutexLock lock(mutex_);
  if (own_ >= 0) ::close(own_);
}

Result<uint64_t> BlockStore::scan(const std::string& path, bool own) {
  SERIN_TRY(const std::shared_ptr<const datasets::StoredFile> file, datasets::StoredFile::open(path));
  uint64_t at = own ? 0 : scanned_[path];
  if (at == 0) {
    if (file->size() < description_.size()) {
      if (!own) return 0;  // its process has just begun
    } else {
      SERIN_TRY(const std::string line, file->read(0, description_.size()));
      if (line != description_) return of_another_run(path);
    }
    at = description_.size();
  }
  while (file->size() - at >= kFrameHead) {
    SERIN_TRY(const std::string head, file->read(at, kFrameHead));
    int64_t block = 0;
    uint64_t bytes = 0;
    std::memcpy(&block, head.data(), sizeof block);
    std::memcpy(&bytes, head.data() + 8, sizeof bytes);
    if (bytes > file->size() - at - kFrameHead) break;
    SERIN_TRY(const std::string payload, file->read(at + kFrameHead, bytes));
    const auto wanted = frame_head(block, payload);
    if (head != std::string_view(wanted.data(), wanted.size())) break;
    frames_.emplace(block, Frame{file, at + kFrameHead, bytes});
    at += kFrameHead + bytes;
  }
  return at;
}

Status BlockStore::look_again() {
  const MutexLock lock(mutex_);
  std::error_code failure;
  for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string path = entry->path().string();
    if (!path.ends_with(kEnding) || path == own_path_) continue;
    const auto scanned = scan(path, /*own=*/false);
    if (!scanned && scanned.error().code == Code::kNotFound) continue;  // another process has joined the blocks, and deletes the folder
    if (!scanned) return scanned.error();
    scanned_[path] = *scanned;
  }
  return {};
}

bool BlockStore::has(int64_t block) const {
  const MutexLock lock(mutex_);
  return frames_.contains(block);
}

size_t BlockStore::count() const {
  const MutexLock lock(mutex_);
  return frames_.size();
}

Status BlockStore::append(int64_t block, std::string_view payload) {
  const auto head = frame_head(block, payload);
  const MutexLock lock(mutex_);
  frame_.assign(head.data(), head.size()).append(payload);  // one write: a call costs more than a copy
  if (!write_at(own_, own_size_, frame_)) return store_error(own_path_, "cannot be written");
  frames_.emplace(block, Frame{own_file_, own_size_ + kFrameHead, payload.size()});
  own_size_ += kFrameHead + payload.size();
  return {};
}

Result<std::string> BlockStore::read(int64_t block) const {
  Frame frame;
  {
    const MutexLock lock(mutex_);
    const auto found = frames_.find(block);
    if (found == frames_.end()) return Error{Code::kInternal, fmt::format("block {} is not in the store", block)};
    frame = found->second;
  }
  return frame.file->read(frame.offset, frame.bytes);
}

Result<int> BlockStore::lock_folder() const {
  const std::string path = (fs::path(folder_) / kLockName).string();
  const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0 && errno == ENOENT) return -1;  // the folder was deleted, so the run is complete
  if (lock < 0) return store_error(path, "cannot be opened");
  while (::flock(lock, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    ::close(lock);
    return store_error(path, "cannot be locked");
  }
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) {
    ::close(lock);
    return -1;
  }
  return lock;
}

void BlockStore::unlock(int lock) { ::close(lock); }

/// The lock goes first: a process that waits for it finds that it is gone.
void BlockStore::remove_folder() const {
  std::error_code ignored;  // the result is in place; what is left does no harm
  fs::remove(fs::path(folder_) / kLockName, ignored);
  fs::remove_all(folder_, ignored);
}

}  // namespace serin::cli
