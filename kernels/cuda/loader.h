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

/// The devices of this machine. Each is opened when it is asked for: an open one costs a context and handles of the libraries, hundreds of
/// megabytes of its memory. Thread-safe.
class CudaDevices {
 public:
  /// `options.device.device` is ignored.
  explicit CudaDevices(CudaOptions options);

  /// As the driver shows them. One whose properties cannot be read has no name. Empty: why() has the reason.
  const std::vector<Device::Info>& listed() const { return listed_; }
  const std::string& why() const { return why_; }

  /// Null if it does not open: `note` gives the reason, otherwise the opened device. `index`: of listed().
  std::unique_ptr<Backend> open(int index, std::string* note) const;

 private:
  const CudaOptions options_;
  cuda::PluginEntry entry_ = nullptr;
  std::vector<Device::Info> listed_;
  std::string why_;
};

}  // namespace serin::kernels
