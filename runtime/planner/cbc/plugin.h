// plugin.h: the interface to libserin_packing.so, the only part that links CBC.
//
// Both sides are built from the same tree, and the version proves it. It changes with this file, integer_program.h and result.h. No exception crosses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/integer_program.h"

namespace serin::planner::cbc {

inline constexpr uint32_t kPluginVersion = 1;
inline constexpr const char* kPluginEntry = "serin_packing_plugin";

struct Plugin {
  std::string library;  ///< "CBC 2.10.8"
  Result<Solution> (*solve)(const Program& program, const SolverLimits& limits, const std::vector<double>& start);
};

/// Fills `plugin`. Returns true if `version` is its own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Plugin* plugin);

}  // namespace serin::planner::cbc
