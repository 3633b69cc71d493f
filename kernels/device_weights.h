// device_weights.h: weights in a device's memory. How much they take is known before any of it is taken: while a model is planned they are asked for, then
// upload() puts all of them into one block.
//
//   auto packed = weights.get(id, "nhwc", bytes, pack);      // in prepare(): packed here and now, `data` is null
//   auto plain = weights.get_plain(id, bytes, fill);         // not even read yet
//   ... weights.wanted() bytes are missing
//   if (Fault fault = weights.upload()) ...                  // from here on `data` is set
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "kernels/device.h"

namespace serin::kernels {

/// Thread-safe. `device` outlives it and every buffer.
class DeviceWeights final : public PackedWeights {
 public:
  using Fill = std::function<void(std::byte*)>;

  explicit DeviceWeights(Device& device) : device_(device) {}

  /// A constant as it is. `fill` writes it to the host's memory in upload(), and holds what it needs for that. id 0 is never shared.
  std::shared_ptr<const Buffer> get_plain(uint64_t id, size_t bytes, Fill fill);

  /// Of the device: what upload() would take, and what is taken, by every buffer that somebody still holds.
  size_t wanted() const;
  size_t allocated() const { return *allocated_; }

  /// A fault where there is no memory, or where the device is lost (Device::lost says which); then nothing has changed. Lets exceptions of `fill` through.
  Fault upload();

 protected:
  std::shared_ptr<const Buffer> make(size_t bytes, const std::function<void(std::byte*)>& pack) override;

 private:
  struct Missing {
    std::weak_ptr<Buffer> buffer;  // nobody's any more: nothing is missing
    Fill fill;
  };
  std::shared_ptr<const Buffer> ask_for(size_t bytes, Fill fill);  // requires mutex_

  Device& device_;
  const std::shared_ptr<std::atomic<size_t>> allocated_ = std::make_shared<std::atomic<size_t>>(0);  // blocks may outlive us
  mutable std::mutex mutex_;
  std::vector<Missing> missing_;                           // guarded by mutex_
  std::map<uint64_t, std::weak_ptr<const Buffer>> plain_;  // guarded by mutex_
};

}  // namespace serin::kernels
