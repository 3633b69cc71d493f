// device_weights.h: Weights in a device's memory, sized before any of it is allocated.
//
// They are requested while a model is planned; then upload() puts all of them into one block.
//
//   auto packed = weights.get(id, "nhwc", bytes, pack);      // in prepare(): packed at once, `data` is null
//   auto plain = weights.get_plain(id, bytes, fill);         // not read yet
//   ... weights.wanted() bytes are missing
//   if (Fault fault = weights.upload()) ...                  // from here on `data` is set
#pragma once

#include <atomic>
#include <vector>

#include "kernels/device.h"
#include "kernels/mutex.h"

namespace serin::kernels {

/// Thread-safe. `device` must outlive it and every buffer.
class DeviceWeights final : public PackedWeights {
 public:
  using Fill = std::function<void(std::byte*)>;

  explicit DeviceWeights(Device& device) : device_(device) {}

  /// A constant in its plain form. `fill` writes it to the host's memory in upload(), and owns the data needed for that. id 0 is never
  /// shared.
  std::shared_ptr<const Buffer> get_plain(uint64_t id, size_t bytes, Fill fill);

  /// Device memory: the amount upload() would take, and the amount taken, by every buffer still in use.
  size_t wanted() const;
  size_t allocated() const { return *allocated_; }

  /// A fault if there is not enough memory, or if the device is lost (Device::lost tells which); then nothing has changed. Exceptions of
  /// `fill` pass through.
  Fault upload();

 protected:
  std::shared_ptr<const Buffer> make(size_t bytes, const std::function<void(std::byte*)>& pack) override;

 private:
  struct Missing {
    std::weak_ptr<Buffer> buffer;  // expired: no longer needed
    Fill fill;
  };
  std::shared_ptr<const Buffer> ask_for(size_t bytes, Fill fill) SERIN_REQUIRES(mutex_);

  Device& device_;
  const std::shared_ptr<std::atomic<size_t>> allocated_ = std::make_shared<std::atomic<size_t>>(0);  // blocks may outlive this object
  mutable Mutex mutex_;
  std::vector<Missing> missing_ SERIN_GUARDED_BY(mutex_);
  std::map<uint64_t, std::weak_ptr<const Buffer>> plain_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::kernels
