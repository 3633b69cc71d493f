#include "kernels/device_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace serin::kernels {

namespace {

/// What the fastest loads want, and cuDNN asks for.
constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Of the device; the last buffer in it lets it go.
class Block {
 public:
  Block(Device& device, size_t bytes, std::shared_ptr<std::atomic<size_t>> allocated)
      : memory(device.allocate(bytes)), device_(device), bytes_(memory ? bytes : 0), allocated_(std::move(allocated)) {
    *allocated_ += bytes_;
  }
  ~Block() {
    if (memory) device_.release(memory);
    *allocated_ -= bytes_;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* const memory;

 private:
  Device& device_;
  const size_t bytes_;
  const std::shared_ptr<std::atomic<size_t>> allocated_;
};

}  // namespace

std::shared_ptr<const PackedWeights::Buffer> DeviceWeights::ask_for(size_t bytes, Fill fill) {
  auto buffer = std::make_shared<Buffer>(nullptr, bytes, [](std::byte*, size_t) {});
  missing_.push_back({buffer, std::move(fill)});
  return buffer;
}

std::shared_ptr<const PackedWeights::Buffer> DeviceWeights::make(size_t bytes, const std::function<void(std::byte*)>& pack) {
  auto packed = PackedWeights::make(bytes, pack);  // what it reads is there now and not later
  const MutexLock lock(mutex_);
  return ask_for(bytes, [packed = std::move(packed)](std::byte* to) { std::memcpy(to, packed->data, packed->bytes); });
}

std::shared_ptr<const PackedWeights::Buffer> DeviceWeights::get_plain(uint64_t id, size_t bytes, Fill fill) {
  const MutexLock lock(mutex_);
  if (id == 0) return ask_for(bytes, std::move(fill));
  if (auto held = plain_[id].lock()) return held;
  auto buffer = ask_for(bytes, std::move(fill));
  plain_[id] = buffer;
  return buffer;
}

size_t DeviceWeights::wanted() const {
  const MutexLock lock(mutex_);
  return std::accumulate(missing_.begin(), missing_.end(), size_t{0}, [](size_t sum, const Missing& each) {
    const auto buffer = each.buffer.lock();
    return sum + (buffer ? aligned(buffer->bytes) : 0);
  });
}

Fault DeviceWeights::upload() {
  struct Upload {
    std::shared_ptr<Buffer> buffer;
    const Fill& fill;
    size_t offset;
  };
  const MutexLock lock(mutex_);
  std::vector<Upload> uploads;
  size_t bytes = 0, largest = 0;
  for (const Missing& each : missing_) {
    auto buffer = each.buffer.lock();
    if (!buffer) continue;
    const size_t offset = bytes;
    bytes += aligned(buffer->bytes);
    largest = std::max(largest, buffer->bytes);
    uploads.push_back({std::move(buffer), each.fill, offset});
  }
  if (bytes == 0) return {};
  const auto block = std::make_shared<Block>(device_, bytes, allocated_);
  if (!block->memory) return device_.lost().value_or("there is not enough memory for " + std::to_string(bytes) + " bytes of weights");
  const std::unique_ptr<Queue> queue = device_.make_queue();
  if (!queue) return device_.lost().value_or("it cannot make a queue");

  const auto staging = std::make_unique_for_overwrite<std::byte[]>(largest);
  for (const Upload& each : uploads) {
    each.fill(staging.get());
    Fault fault = queue->copy(block->memory + each.offset, staging.get(), each.buffer->bytes);
    if (!fault) fault = queue->finish();
    if (fault) return fault;
  }
  for (const Upload& each : uploads) {
    each.buffer->data = block->memory + each.offset;
    each.buffer->release = [block](std::byte*, size_t) {};
  }
  missing_.clear();
  return {};
}

}  // namespace serin::kernels
