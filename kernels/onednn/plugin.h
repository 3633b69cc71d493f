// plugin.h: The interface to libserin_onednn.so, the only part that links oneDNN and OpenMP (kernels/cpu/onednn_loader.cc explains why).
//
// Both sides are built from the same tree, and the version proves it. The version changes with everything that crosses the interface: this
// file, backend.h, op.h, simd.h.
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

/// Limits oneDNN to `isa`, gives it our own loops for the cases it does not do well, and fills `plugin`. Returns true if `version` is its
/// own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Isa isa, const cpu::Simd& simd, Plugin* plugin);

}  // namespace serin::kernels::onednn
