// device_under_test.h: the backend that tests of a device run on. On any machine: the kernels of kernels/cuda/ on the emulated device. With SERIN_CUDA_PLUGIN
// in the environment: the plugin of that path, on the device that it finds (tests/gpu/run).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/loader.h"
#include "kernels/cuda/table.h"
#include "kernels/device.h"

namespace serin::test {

inline const char* plugin_path() { return std::getenv("SERIN_CUDA_PLUGIN"); }

/// Whether the counters and faults of the emulated <cuda_runtime.h> are those of the device that open_device() opens.
inline bool emulated() { return !plugin_path(); }

/// Ends the program with the test under which a device was lost: all that follow in this process would fail, and say nothing. tests/gpu/run begins them anew.
class EndsWithTheDevice final : public testing::EmptyTestEventListener {
 public:
  explicit EndsWithTheDevice(std::shared_ptr<const kernels::Backend> backend) : backend_(std::move(backend)) {}
  void OnTestEnd(const testing::TestInfo&) override {
    const kernels::Fault lost = backend_->device()->lost();
    if (!lost) return;
    std::cerr << "the device is lost: " << *lost << std::endl;
    std::abort();
  }

 private:
  const std::shared_ptr<const kernels::Backend> backend_;
};

/// Ends the program with the reason where the plugin that was asked for does not open.
inline std::shared_ptr<const kernels::Backend> open_device() {
  std::string why;
  if (emulated())
    return std::make_shared<const kernels::Backend>("cuda emulated", kernels::cuda::make_table(),
                                                    std::shared_ptr(kernels::cuda::open_device(0, why)));
  const std::shared_ptr<const kernels::Backend> backend = kernels::make_cuda_backend({.device = {}, .plugin_path = plugin_path()}, &why);
  if (!backend) {
    std::cerr << plugin_path() << ": " << why << "\n";
    std::exit(3);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new EndsWithTheDevice(backend));
  return backend;
}

}  // namespace serin::test
