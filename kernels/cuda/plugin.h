// plugin.h: The interface to libserin_cuda.so, the only part that links NVIDIA's libraries (kernels/cuda/loader.cc explains why it is a
// plugin).
//
// Both sides are built from the same tree, and the version proves it. The version changes with everything that crosses the interface: this
// file, backend.h, device.h, op.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace serin::kernels::cuda {

inline constexpr uint32_t kPluginVersion = 7;
inline constexpr const char* kPluginEntry = "serin_cuda_plugin";

struct Options {
  static constexpr int kList = -1;
  int device = 0;              ///< the number among the devices that the driver shows; kList: they are listed, and none is opened
  std::string tactics_folder;  ///< the folder of measured choices (tactics.h); empty: not kept
};

struct Opened {
  std::shared_ptr<Device> device;  ///< null: nothing was opened
  KernelTable table;
  std::vector<Device::Info> listed;  ///< with kList: as list_devices() (device.h)
  std::string note;                  ///< "NVIDIA H200 sm_90, cuBLASLt 13.1.0, cuDNN 9.19.0", or the reason if none
};

/// Opens a device, or lists all, and fills `opened`; false if `version` is not its own.
using PluginEntry = bool (*)(uint32_t version, const Options& options, Opened* opened);

}  // namespace serin::kernels::cuda
