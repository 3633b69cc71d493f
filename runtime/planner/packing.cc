// packing.cc: first fit gives the solver its start; the solver says how far that, or its own, is from the best.

#include "runtime/planner/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "runtime/planner/packing_program.h"

namespace serin::planner {
namespace {

std::set<size_t> models_of(const std::vector<Placed>& placed) {
  std::set<size_t> models;
  for (const Placed& each : placed) models.insert(each.model);
  return models;
}

size_t with_options(const std::vector<WantedModel>& wanted) {
  return static_cast<size_t>(std::ranges::count_if(wanted, [](const WantedModel& model) { return !model.options.empty(); }));
}

/// Both solutions in turn; an error leaves what was found before it.
Status improve(const Fleet& fleet, const PackingProgram& program, const Solver& solver, size_t possible, Packing& packing) {
  const auto started = std::chrono::steady_clock::now();
  const auto left = [&] {
    return std::max(0.1, fleet.timeout - std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  };
  if (models_of(packing.placed).size() < possible) {
    constexpr double kHalf = 0.5;  // of the time, so that the cost has some
    SERIN_TRY(const Solution most,
              solver.solve(program.most_models(), {.seconds = fleet.timeout * kHalf, .gap = 0}, program.values_of(packing.placed)));
    packing.most_models = std::min(possible, static_cast<size_t>(std::max(0.0, std::floor(-most.bound + 1e-6))));
    if (!most.values.empty()) {
      std::vector<Placed> found = program.placed_of(most.values);
      if (models_of(found).size() > models_of(packing.placed).size()) packing.placed = std::move(found);
    }
  }
  const size_t models = models_of(packing.placed).size();
  if (models == 0) return {};
  SERIN_TRY(const Solution best,
            solver.solve(program.least_cost(models), {.seconds = left(), .gap = fleet.gap}, program.values_of(packing.placed)));
  packing.least_cost = std::max(0.0, best.bound);
  if (best.values.empty()) return {};
  const double before = program.cost_of_values(program.values_of(packing.placed));
  if (best.objective < before) packing.placed = program.placed_of(best.values);
  return {};
}

}  // namespace

Packing pack(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Solver* solver) {
  const auto started = std::chrono::steady_clock::now();
  Packing packing{.placed = first_fit(fleet, wanted), .most_models = with_options(wanted), .priced = has_prices(fleet)};
  const PackingProgram program(fleet, wanted);
  if (solver) {
    const Status improved = improve(fleet, program, *solver, packing.most_models, packing);
    if (improved)
      packing.solver = solver->library();
    else
      packing.why_no_solver = improved.error().message;
  }
  packing.cost = program.cost_of_values(program.values_of(packing.placed));
  const std::set<size_t> placed = models_of(packing.placed);
  for (size_t model = 0; model < wanted.size(); ++model)
    if (!placed.contains(model)) packing.not_placed.emplace_back(model, why_not_placed(fleet, wanted, model, packing.placed));
  packing.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return packing;
}

CardUse use_of_card(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed, size_t node,
                    size_t card) {
  const Accelerator& accelerator = fleet.nodes[node].accelerators[card];
  CardUse use{.memory = accelerator.memory_used, .time = accelerator.busy, .in_use = accelerator.in_use()};
  for (const Placed& each : placed) {
    if (each.node != node || each.accelerator != card) continue;
    const Option& way = wanted[each.model].options[each.option];
    use.memory += each.replicas * way.device_memory;
    use.time += each.replicas * way.busy;
    use.in_use = true;
  }
  return use;
}

FleetUse use_of(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed) {
  FleetUse use;
  use.models = models_of(placed).size();
  for (size_t node = 0; node < fleet.nodes.size(); ++node)
    for (size_t card = 0; card < fleet.nodes[node].accelerators.size(); ++card) {
      const CardUse taken = use_of_card(fleet, wanted, placed, node, card);
      ++use.all;
      if (!taken.in_use) continue;
      ++use.in_use;
      use.memory += taken.memory / fleet.nodes[node].accelerators[card].memory;
      use.time += taken.time;
    }
  if (use.in_use > 0) {
    use.memory /= static_cast<double>(use.in_use);
    use.time /= static_cast<double>(use.in_use);
  }
  return use;
}

}  // namespace serin::planner
