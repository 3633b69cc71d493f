// device_under_test.h: the backend that tests of a device run on. On any machine: the kernels of kernels/cuda/ on the emulated device. With SERIN_CUDA_PLUGIN
// in the environment: the plugin of that path, on the device that it finds (tests/gpu/run).
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/table.h"
#include "tests/gpu/plugin_under_test.h"

namespace serin::test {

/// Whether the counters and faults of the emulated <cuda_runtime.h> are those of the device that open_device() opens.
inline bool emulated() { return !plugin_path(); }

inline std::shared_ptr<const kernels::Backend> open_device() {
  if (!emulated()) return open_plugin();
  std::string why;
  return std::make_shared<const kernels::Backend>("cuda emulated", kernels::cuda::make_table(),
                                                  std::shared_ptr(kernels::cuda::open_device(0, why)));
}

}  // namespace serin::test
