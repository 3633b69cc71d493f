// device_weights.h: weights in a device's memory, packed on the host and copied there.
#pragma once

#include "kernels/device.h"

namespace serin::kernels {

/// Thread-safe. `device` outlives it and every buffer.
class DeviceWeights final : public PackedWeights {
 public:
  explicit DeviceWeights(Device& device) : device_(device) {}

 protected:
  std::shared_ptr<const Buffer> make(size_t bytes, const std::function<void(std::byte*)>& pack) override;

 private:
  Device& device_;
};

}  // namespace serin::kernels
