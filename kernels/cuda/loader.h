// loader.h: Finds and opens libserin_cuda.so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/plugin.h"

namespace serin::kernels {

struct CudaOptions {
  cuda::Options device;
  /// libserin_cuda.so; empty: next to the program, then ../lib, if the machine has a driver.
  std::string plugin_path;
};

/// Null if there is no driver, no plugin or no such device: `note` gives the reason, otherwise the opened device.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string* note);

/// Every device that the driver shows, in its order, null for those that do not open; `options.device.device` is ignored. `note` lists the
/// opened devices, and the reasons for others.
std::vector<std::unique_ptr<Backend>> make_cuda_backends(CudaOptions options, std::string* note);

}  // namespace serin::kernels
