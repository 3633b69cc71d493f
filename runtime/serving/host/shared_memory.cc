#include "runtime/serving/host/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace serin::serving {
namespace {

constexpr size_t kMostRegions = 1024, kLongestName = 256;

/// "/name" or "name", as shm_open takes it: never a path.
bool is_key(std::string_view key) {
  if (key.starts_with('/')) key.remove_prefix(1);
  const auto fine = [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '/'; };
  return !key.empty() && key.size() < 255 && key.find("..") == std::string_view::npos && key != "." && std::ranges::all_of(key, fine);
}

bool is_within(uint64_t offset, uint64_t bytes, uint64_t whole) { return offset <= whole && bytes <= whole - offset; }

}  // namespace

class SharedMemory::File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

class SharedMemory::Range final : public protocol::SharedRange {
 public:
  Range(std::shared_ptr<const File> file, uint64_t start, std::string_view of, uint64_t from, uint64_t count)
      : SharedRange(std::string(of), from, count), file_(std::move(file)), start_(start) {}

  Status read(std::span<std::byte> into) const override {
    return move(into.size(),
                [&](size_t done, off_t at) { return ::pread(file_->descriptor(), into.data() + done, into.size() - done, at); });
  }
  Status write(std::string_view from) const override {
    struct stat status{};  // memory that was cut short is not made longer again
    if (::fstat(file_->descriptor(), &status) != 0 || !is_within(start_, from.size(), static_cast<uint64_t>(status.st_size)))
      return smaller();
    return move(from.size(),
                [&](size_t done, off_t at) { return ::pwrite(file_->descriptor(), from.data() + done, from.size() - done, at); });
  }

 private:
  Error smaller() const { return invalid(fmt::format("shared memory region '{}' is smaller than it was when it was registered", region)); }
  template <class Step>
  Status move(size_t size, Step step) const {
    for (size_t done = 0; done < size;) {
      const ssize_t moved = step(done, static_cast<off_t>(start_ + done));
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) return smaller();
      done += static_cast<size_t>(moved);
    }
    return {};
  }

  const std::shared_ptr<const File> file_;
  const uint64_t start_;  // within the file
};

Status SharedMemory::add(const Region& region) {
  if (region.name.empty() || region.name.size() > kLongestName)
    return invalid(fmt::format("a region's name has 1 to {} bytes", kLongestName));
  if (!is_key(region.key)) return invalid("'key' must be the name of shared memory as shm_open takes it, without a path");
  if (region.byte_size == 0) return invalid(fmt::format("shared memory region '{}': 'byte_size' must be at least 1", region.name));
  const int descriptor = ::shm_open(region.key.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
  if (descriptor < 0) return Error{Code::kNotFound, fmt::format("Unable to open shared memory region: '{}'", region.name)};
  auto file = std::make_shared<const File>(descriptor);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return invalid(fmt::format("shared memory region '{}' is no memory", region.name));
  if (!is_within(region.offset, region.byte_size, static_cast<uint64_t>(status.st_size)))
    return invalid(fmt::format("failed to register shared memory region '{}': invalid args: offset {} and byte_size {} are beyond its end",
                               region.name, region.offset, region.byte_size));
  const MutexLock lock(mutex_);
  if (regions_.contains(region.name))
    return Error{Code::kAlreadyExists, fmt::format("shared memory region '{}' already in manager", region.name)};
  if (regions_.size() >= kMostRegions)
    return Error{Code::kOverloaded, fmt::format("{} shared memory regions are registered already", kMostRegions)};
  regions_.emplace(region.name, Held{region, std::move(file)});
  measure();
  return {};
}

Result<std::vector<SharedMemory::Region>> SharedMemory::list(std::string_view name) const {
  const MutexLock lock(mutex_);
  std::vector<Region> regions;
  for (const auto& [held_name, held] : regions_)
    if (name.empty() || name == held_name) regions.push_back(held.region);
  if (regions.empty() && !name.empty())
    return Error{Code::kNotFound, fmt::format("Unable to find system shared memory region: '{}'", name.substr(0, kLongestName))};
  return regions;
}

void SharedMemory::remove(std::string_view name) {
  const MutexLock lock(mutex_);
  if (name.empty())
    regions_.clear();
  else if (const auto held = regions_.find(name); held != regions_.end())
    regions_.erase(held);
  measure();
}

void SharedMemory::measure() {
  uint64_t most = 0;
  for (const auto& [name, held] : regions_) most = std::max(most, held.region.byte_size);
  largest_.store(most, std::memory_order_relaxed);
}

Result<protocol::SharedRangePtr> SharedMemory::open(std::string_view region, uint64_t offset, uint64_t bytes) const {
  const MutexLock lock(mutex_);
  const auto held = regions_.find(region);
  if (held == regions_.end())
    return Error{Code::kNotFound, fmt::format("Unable to find shared memory region: '{}'", region.substr(0, kLongestName))};
  if (!is_within(offset, bytes, held->second.region.byte_size))
    return invalid(fmt::format("Invalid offset + byte size for shared memory region: '{}': {} and {}, it has {}", region, offset, bytes,
                               held->second.region.byte_size));
  return protocol::SharedRangePtr(std::make_shared<Range>(held->second.file, held->second.region.offset + offset, region, offset, bytes));
}

}  // namespace serin::serving
