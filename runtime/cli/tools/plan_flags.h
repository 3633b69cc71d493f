// plan_flags.h: the command line of `serin plan`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cli/engine_flags.h"
#include "runtime/cli/tools/plan_fleet.h"
#include "runtime/cli/tools/plan_load.h"
#include "runtime/cli/tools/plan_template.h"
#include "runtime/cli/tools/prometheus_source.h"
#include "runtime/planner/answer.h"

namespace serin::cli {

struct PlanOptions {
  std::vector<std::string> places;
  planner::Question question;
  EngineFlags engine;  // --isa alone
  std::string precision, device, device_precision, memory, catalogue;
  int cores = 0;
  size_t steps = 10;
  double calibrate_seconds = 0;  // 0: only read what was measured before
  std::string calibration, html, observe;
  PrometheusFlags prometheus;
  LoadFlags load;
  TemplateFlags from_template;
  FleetFlags fleet;
  bool smoke = false;
  bool this_machine = false;  // --device cpu
  struct {
    bool instances = false, precision = false;
  } given;  // by flags, and not by a template
  bool leave_out = false;
  bool keep = false;  // what --observe measured
  bool json = false;
};

void add_plan_flags(CLI::App& command, PlanOptions& options);

}  // namespace serin::cli
