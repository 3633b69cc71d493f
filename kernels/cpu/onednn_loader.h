// onednn_loader.h: Finds and opens libserin_onednn.so.
#pragma once

#include <string>

#include "kernels/backend.h"
#include "kernels/onednn/plugin.h"

namespace serin::kernels::onednn {

struct Loaded {
  Plugin plugin;     ///< without rows if nothing was loaded
  std::string note;  ///< "oneDNN 3.2.0", or "no oneDNN: " and the reason
};

/// Tries options.onednn_path, otherwise the folder of the program, then ../lib from there; "none": nothing. Never fails: the note reports
/// the result.
Loaded load(const CpuOptions& options, const cpu::Simd& simd);

}  // namespace serin::kernels::onednn
