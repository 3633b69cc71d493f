// onednn_loader.h: finds and opens libserin_onednn.so.
#pragma once

#include <string>

#include "kernels/backend.h"
#include "kernels/onednn/plugin.h"

namespace serin::kernels::onednn {

struct Loaded {
  Plugin plugin;     ///< without rows where nothing was loaded
  std::string note;  ///< "oneDNN 3.2.0", or "no oneDNN: " and the reason
};

/// options.onednn_path, else beside the program, else ../lib from there; "none": nothing. Never fails: the note says what happened.
Loaded load(const CpuOptions& options, const cpu::Simd& simd);

}  // namespace serin::kernels::onednn
