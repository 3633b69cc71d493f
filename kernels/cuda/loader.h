// loader.h: finds and opens libserin_cuda.so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/plugin.h"

namespace serin::kernels {

struct CudaOptions {
  cuda::Options device;
  std::string plugin_path;  ///< libserin_cuda.so; empty: beside the program, then ../lib, where the machine has a driver
};

/// For Options::tactics_folder: `asked`, nowhere where that is "none", and where it is empty "serin" in XDG_CACHE_HOME or in .cache of HOME, if there is one.
std::string tactics_folder(const std::string& asked);

/// Null where there is no driver, no plugin or no such device: `note` says which, else what was opened.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options, std::string* note);

/// Every device that the driver shows, in its order, null where it does not open; `options.device.device` says nothing here. `note` says what was opened, and why
/// not.
std::vector<std::unique_ptr<Backend>> make_cuda_backends(CudaOptions options, std::string* note);

}  // namespace serin::kernels
