// integer_program.h: a mixed integer program, and what a solver found.
#pragma once

#include <utility>
#include <vector>

namespace serin::planner {

struct Column {
  double lower = 0, upper = 1, cost = 0;
  bool integer = true;
};

struct Row {
  double lower = 0, upper = 0;                  ///< infinite: no limit
  std::vector<std::pair<int, double>> entries;  ///< column and factor, each column once
};

/// Minimises the cost.
struct Program {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

struct SolverLimits {
  double seconds = 60;
  double gap = 0.01;  ///< relative: where it may stop
};

struct Solution {
  std::vector<double> values;  ///< of the columns; empty: none was found in time
  double objective = 0;
  double bound = 0;  ///< no solution costs less
  bool infeasible = false;
};

}  // namespace serin::planner
