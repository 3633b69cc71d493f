// plan_model.h: plans one version of a model.
#pragma once

#include "runtime/base/result.h"
#include "runtime/planner/answer.h"
#include "runtime/planner/places.h"

namespace serin::planner {

/// `found.settings` already has what the question says.
Result<ModelAnswer> plan_model(const FoundModel& found, const Question& question, const Machine& machine);

}  // namespace serin::planner
