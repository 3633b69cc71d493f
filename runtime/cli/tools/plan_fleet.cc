#include "runtime/cli/tools/plan_fleet.h"

#include <iostream>

#include "runtime/cli/commands.h"
#include "runtime/cli/tools/plan_fleet_load.h"
#include "runtime/planner/fleet_file.h"
#include "runtime/planner/fleet_needs.h"
#include "runtime/planner/fleet_report.h"

namespace serin::cli {

Result<planner::Fleet> read_fleet_now(const FleetFlags& flags, const PrometheusFlags& prometheus, const planner::Catalogue& catalogue) {
  SERIN_TRY(planner::Fleet fleet, planner::read_fleet(flags.file, catalogue));
  if (!flags.load.empty()) SERIN_CHECK(measure_load(flags.load, prometheus, catalogue, fleet));
  return fleet;
}

Result<int> plan_fleet(const FleetFlags& flags, planner::Fleet fleet, const std::vector<std::string>& places,
                       const planner::Planner& planner, const planner::Calibration* calibration, const planner::Catalogue& catalogue,
                       bool json) {
  for (const std::string& place : places) {
    planner::FleetModel model;
    model.task.models = {place};
    fleet.models.push_back(std::move(model));
  }
  if (fleet.models.empty()) return invalid(flags.file + ": has no models, and the command names none");
  SERIN_TRY(const auto wanted, planner::fleet_needs(planner, fleet, calibration, catalogue));
  const auto solver = planner::Solver::open(flags.solver);
  planner::Packing packing = planner::pack(fleet, wanted, solver ? &*solver : nullptr);
  if (!solver) packing.why_no_solver = solver.error().message;
  std::cout << (json ? planner::print_fleet_json(fleet, wanted, packing) + "\n" : planner::print_fleet_text(fleet, wanted, packing))
            << std::flush;
  return packing.not_placed.empty() ? kYes : kNo;
}

}  // namespace serin::cli
