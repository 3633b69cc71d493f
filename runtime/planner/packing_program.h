// packing_program.h: a packing as a mixed integer program: its columns, its rows, and a packing of its values.
//
// Columns. z of a model and an option is 1 if that option is taken. x of an option and a place counts replicas. y of an accelerator is 1 if it is in use.
// Rows. A model has one option at most. Its x are as many as the option has replicas. Memory, time, cores and quotas have limits.
#pragma once

#include <vector>

#include "runtime/planner/free_room.h"
#include "runtime/planner/integer_program.h"
#include "runtime/planner/wanted.h"

namespace serin::planner {

class PackingProgram {
 public:
  PackingProgram(const Fleet& fleet, const std::vector<WantedModel>& wanted);

  /// The most models are placed.
  Program most_models() const;
  /// The cost of at least so many models is least.
  Program least_cost(size_t models) const;

  /// Values of the columns for what was placed, and the reverse.
  std::vector<double> values_of(const std::vector<Placed>& placed) const;
  std::vector<Placed> placed_of(const std::vector<double>& values) const;
  double cost_of_values(const std::vector<double>& values) const;

 private:
  struct Taken {
    size_t model, option;
    int column;
  };
  struct Where {
    Placed placed;
    int column;  ///< of x
  };
  struct Open {
    size_t node, accelerator;
    int column;
    double cost;
  };
  int add(double upper, double cost);
  /// `room`: of the fleet before anything is placed; `highest`: cost of the most expensive accelerator that may come into use.
  void add_places(const FreeRoom& room, double highest, size_t model, size_t option, int taken);
  void limit_cards();
  void limit_nodes();
  void limit_quotas();

  const Fleet& fleet_;
  const std::vector<WantedModel>& wanted_;
  Program program_;
  std::vector<Taken> taken_;
  std::vector<Where> places_;
  std::vector<Open> open_;
  std::vector<std::vector<int>> open_of_;  ///< y by node and accelerator; -1: already in use
};

}  // namespace serin::planner
