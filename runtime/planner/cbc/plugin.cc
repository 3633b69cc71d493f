// plugin.cc: the one symbol of libserin_packing.so. A program goes to CBC column by column, as its C interface takes it. No exception crosses it.

#include "runtime/planner/cbc/plugin.h"

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <new>

namespace serin::planner::cbc {
namespace {

struct Delete {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using Model = std::unique_ptr<Cbc_Model, Delete>;

double limited(double value) { return std::clamp(value, -1e30, 1e30); }  // CBC's infinity

void load(Cbc_Model* model, const Program& program) {
  const size_t columns = program.columns.size(), rows = program.rows.size();
  std::vector<CoinBigIndex> starts(columns + 1, 0);
  for (const Row& row : program.rows)
    for (const auto& [column, factor] : row.entries) ++starts[static_cast<size_t>(column) + 1];
  for (size_t i = 0; i < columns; ++i) starts[i + 1] += starts[i];
  std::vector<CoinBigIndex> next(starts.begin(), starts.end() - 1);
  std::vector<int> indices(static_cast<size_t>(starts.back()));
  std::vector<double> values(indices.size()), lower, upper, costs, least, most;
  for (size_t row = 0; row < rows; ++row)
    for (const auto& [column, factor] : program.rows[row].entries) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(column)]++);
      indices[at] = static_cast<int>(row);
      values[at] = factor;
    }
  for (const Column& column : program.columns) {
    lower.push_back(limited(column.lower));
    upper.push_back(limited(column.upper));
    costs.push_back(column.cost);
  }
  for (const Row& row : program.rows) {
    least.push_back(limited(row.lower));
    most.push_back(limited(row.upper));
  }
  Cbc_loadProblem(model, static_cast<int>(columns), static_cast<int>(rows), starts.data(), indices.data(), values.data(), lower.data(),
                  upper.data(), costs.data(), least.data(), most.data());
  for (size_t i = 0; i < columns; ++i)
    if (program.columns[i].integer) Cbc_setInteger(model, static_cast<int>(i));
}

void start_with(Cbc_Model* model, const std::vector<double>& start) {
  std::vector<int> columns;
  std::vector<double> values;
  for (size_t i = 0; i < start.size(); ++i)
    if (start[i] != 0) {
      columns.push_back(static_cast<int>(i));
      values.push_back(start[i]);
    }
  if (!columns.empty()) Cbc_setMIPStartI(model, static_cast<int>(columns.size()), columns.data(), values.data());
}

Result<Solution> solve_with_cbc(const Program& program, const SolverLimits& limits, const std::vector<double>& start) {
  const Model model(Cbc_newModel());
  if (!model) return Error{Code::kInternal, "CBC: no model was made"};
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "timeMode", "elapsed");
  Cbc_setParameter(model.get(), "seconds", fmt::format("{}", limits.seconds).c_str());
  Cbc_setParameter(model.get(), "ratioGap", fmt::format("{}", limits.gap).c_str());
  load(model.get(), program);
  start_with(model.get(), start);
  Cbc_solve(model.get());
  Solution solution;
  solution.infeasible = Cbc_isProvenInfeasible(model.get()) != 0;
  if (solution.infeasible) return solution;
  solution.bound = Cbc_getBestPossibleObjValue(model.get());
  const double* const values = Cbc_bestSolution(model.get());
  if (!values) return solution;
  solution.values.assign(values, values + program.columns.size());
  solution.objective = 0;
  for (size_t i = 0; i < program.columns.size(); ++i) {
    if (program.columns[i].integer) solution.values[i] = std::round(solution.values[i]);
    solution.objective += program.columns[i].cost * solution.values[i];
  }
  solution.bound = std::min(solution.bound, solution.objective);
  return solution;
}

Result<Solution> solve(const Program& program, const SolverLimits& limits, const std::vector<double>& start) {
  try {
    return solve_with_cbc(program, limits, start);
  } catch (const std::bad_alloc&) {
    return Error{Code::kTooLarge, "CBC: there is not enough memory"};
  } catch (const std::exception& error) {
    return Error{Code::kInternal, fmt::format("CBC: {}", error.what())};
  } catch (...) {  // CoinError is no std::exception
    return Error{Code::kInternal, "CBC refused the program"};
  }
}

}  // namespace
}  // namespace serin::planner::cbc

extern "C" __attribute__((visibility("default"))) bool serin_packing_plugin(uint32_t version, serin::planner::cbc::Plugin* plugin) {
  using namespace serin::planner::cbc;
  if (version != kPluginVersion) return false;
  try {
    *plugin = {.library = fmt::format("CBC {}", Cbc_getVersion()), .solve = solve};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}
