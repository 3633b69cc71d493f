// plugin_under_test.h: the device of the plugin that SERIN_CUDA_PLUGIN names: a real one (tests/gpu/run), or the emulated one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/loader.h"
#include "kernels/device.h"

namespace serin::test {

/// Null where none is named.
inline const char* plugin_path() { return std::getenv("SERIN_CUDA_PLUGIN"); }

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
inline std::shared_ptr<const kernels::Backend> open_plugin() {
  std::string why;
  const std::shared_ptr<const kernels::Backend> backend = kernels::make_cuda_backend({.device = {}, .plugin_path = plugin_path()}, &why);
  if (!backend) {
    std::cerr << plugin_path() << ": " << why << "\n";
    std::exit(3);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new EndsWithTheDevice(backend));
  return backend;
}

}  // namespace serin::test
