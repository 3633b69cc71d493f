// plugin.h: the border to libserin_onednn.so, which alone links against oneDNN and OpenMP (why it is a plugin: kernels/cpu/onednn_loader.cc).
//
// Both sides are built from the same tree; the version says so. It changes with anything that crosses the border: this file, backend.h, op.h, simd.h.
#pragma once

#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::onednn {

inline constexpr uint32_t kPluginVersion = 3;
inline constexpr const char* kPluginEntry = "serin_onednn_plugin";

struct Plugin {
  std::string library;  ///< "oneDNN 3.2.0"
  std::vector<KernelRow> conv, matmul;
};

/// Limits oneDNN to `isa`, lends it our own loops for what it does not do well, fills `plugin`, and answers true if `version` is its own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Isa isa, const cpu::Simd& simd, Plugin* plugin);

}  // namespace serin::kernels::onednn
