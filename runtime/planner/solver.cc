// solver.cc: opens libserin_packing.so. CBC is a plugin because `serin` starts in milliseconds, and only a fleet needs it and LAPACK.

#include "runtime/planner/solver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "runtime/base/file.h"
#include "runtime/planner/cbc/plugin.h"

namespace serin::planner {
namespace {

constexpr const char* kSolverFile = "libserin_packing.so";

std::vector<std::string> solver_candidates(const std::string& path) {
  if (!path.empty()) return {path};
  const std::string folder = program_folder();
  return {folder + "/" + kSolverFile, folder + "/../lib/" + kSolverFile};
}

}  // namespace

Result<Solver> Solver::open(const std::string& path) {
  void* library = nullptr;
  std::string reasons;
  for (const std::string& candidate : solver_candidates(path)) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
  }
  if (!library) return Error{Code::kNotFound, fmt::format("an exact answer needs {}: {}", kSolverFile, reasons)};
  const auto entry = reinterpret_cast<cbc::PluginEntry>(dlsym(library, cbc::kPluginEntry));
  if (!entry) return Error{Code::kNotFound, fmt::format("{} is no plugin of Serin: {}", path, dlerror())};
  const auto plugin = std::make_shared<cbc::Plugin>();
  if (!entry(cbc::kPluginVersion, plugin.get()))
    return Error{Code::kFailedPrecondition, fmt::format("{} is of another build than this program", kSolverFile)};
  return Solver(plugin);
}

Result<Solution> Solver::solve(const Program& program, const SolverLimits& limits, const std::vector<double>& start) const {
  return plugin_->solve(program, limits, start);
}

const std::string& Solver::library() const { return plugin_->library; }

}  // namespace serin::planner
