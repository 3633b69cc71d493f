// solver.cc: opens libserin_packing.so. CBC is a plugin because `serin` starts in milliseconds, and only a fleet needs it and LAPACK.

#include "runtime/planner/solver.h"

#include <fmt/format.h>

#include "runtime/base/plugin_file.h"
#include "runtime/planner/cbc/plugin.h"

namespace serin::planner {
namespace {

constexpr const char* kSolverFile = "libserin_packing.so";

}  // namespace

Result<Solver> Solver::open(const std::string& path) {
  const auto plugin = std::make_shared<cbc::Plugin>();
  SERIN_CHECK(open_plugin(
      {.file = kSolverFile, .entry = cbc::kPluginEntry, .missing = fmt::format("an exact answer needs {}", kSolverFile), .path = path},
      cbc::kPluginVersion, *plugin));
  return Solver(plugin);
}

Result<Solution> Solver::solve(const Program& program, const SolverLimits& limits, const std::vector<double>& start) const {
  return plugin_->solve(program, limits, start);
}

const std::string& Solver::library() const { return plugin_->library; }

}  // namespace serin::planner
