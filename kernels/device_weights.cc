#include "kernels/device_weights.h"

#include <new>

namespace serin::kernels {

std::shared_ptr<const PackedWeights::Buffer> DeviceWeights::make(size_t bytes, const std::function<void(std::byte*)>& pack) {
  const auto packed = PackedWeights::make(bytes, pack);
  std::byte* const memory = device_.allocate(bytes);
  if (!memory) throw std::bad_alloc();
  auto buffer = std::make_shared<Buffer>(memory, bytes, [this](std::byte* data, size_t) { device_.release(data); });
  const std::unique_ptr<Queue> queue = device_.make_queue();
  Fault fault = queue ? queue->copy(memory, packed->data, bytes) : Fault("it takes no work");
  if (!fault) fault = queue->finish();
  if (fault) throw DeviceLost(device_.info().name + ": " + *fault);
  return buffer;
}

}  // namespace serin::kernels
