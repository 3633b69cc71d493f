// plugin.h: the border to libserin_cuda.so, which alone links NVIDIA's libraries (why it is a plugin: kernels/cuda/loader.cc).
//
// Both sides are built from the same tree; the version says so. It changes with anything that crosses the border: this file, backend.h, device.h, op.h.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace serin::kernels::cuda {

inline constexpr uint32_t kPluginVersion = 6;
inline constexpr const char* kPluginEntry = "serin_cuda_plugin";

struct Options {
  int device = 0;              ///< as the driver counts those that it shows
  std::string tactics_folder;  ///< where measured choices are kept (tactics.h); empty: nowhere
};

struct Opened {
  std::shared_ptr<Device> device;  ///< null: nothing was opened
  KernelTable table;
  int visible = 0;   ///< devices that the driver shows, this one included
  std::string note;  ///< "NVIDIA H200 sm_90, cuBLASLt 13.1.0, cuDNN 9.19.0", or why not
};

/// Opens a device and fills `opened`; false if `version` is not its own.
using PluginEntry = bool (*)(uint32_t version, const Options& options, Opened* opened);

}  // namespace serin::kernels::cuda
