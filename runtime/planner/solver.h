// solver.h: solves mixed integer programs with COIN-OR's CBC, in a plugin that only fleets need: libserin_packing.so.
//
//   SERIN_TRY(const Solver solver, Solver::open());
//   SERIN_TRY(const Solution best, solver.solve(program, {.seconds = 30, .gap = 0.01}, start));
//   // best.objective - best.bound is the most that could still be gained
//
// Without the plugin open() is an error, and a caller goes on without a bound.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/integer_program.h"

namespace serin::planner {

namespace cbc {
struct Plugin;
}

class Solver {
 public:
  /// Opens the plugin at `path`; empty: next to the program, or in ../lib from there. kNotFound names the file.
  static Result<Solver> open(const std::string& path = {});

  /// `start`: a solution that is known, one value for each column; empty: none. kInternal: the solver refused the program.
  Result<Solution> solve(const Program& program, const SolverLimits& limits, const std::vector<double>& start) const;

  const std::string& library() const;  ///< "CBC 2.10.8"

 private:
  explicit Solver(std::shared_ptr<const cbc::Plugin> plugin) : plugin_(std::move(plugin)) {}
  std::shared_ptr<const cbc::Plugin> plugin_;
};

}  // namespace serin::planner
