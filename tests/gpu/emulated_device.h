// emulated_device.h: a backend of the kernels in kernels/cuda/ on the emulated device.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/table.h"
#include "kernels/device.h"

namespace serin::test {

inline std::unique_ptr<kernels::Backend> emulated_device() {
  std::string why;
  return std::make_unique<kernels::Backend>("cuda emulated", kernels::cuda::make_table(),
                                            std::shared_ptr(kernels::cuda::open_device(0, why)));
}

}  // namespace serin::test
