// plan_corrections.h: times of runs that servers have measured correct later plans of the same models.
#pragma once

#include "runtime/planner/answer.h"
#include "runtime/planner/calibration.h"
#include "runtime/planner/observed.h"

namespace serin::cli {

/// Applies what was kept for the files of each model. They are read only if there is a correction of some model.
Status correct_times(const planner::Calibration& calibration, planner::Answer& answer);

/// Keeps what was observed of each model with enough runs; a note says for each what was kept, or why nothing was.
Status keep_times(planner::Observed& observed, const planner::Answer& answer, planner::Calibration& calibration);

}  // namespace serin::cli
