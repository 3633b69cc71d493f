// report.h: an answer as text, and as data for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/planner/answer.h"
#include "runtime/planner/observed.h"
#include "runtime/planner/offers.h"
#include "runtime/planner/placement.h"
#include "runtime/planner/task.h"

namespace serin::planner {

/// Parts of a report in addition to the answer: null or empty where nothing was asked.
struct Extras {
  const Placement* placement = nullptr;  ///< of this answer
  const Offers* offers = nullptr;
  std::vector<Note> notes;  ///< of the task file
  const Observed* observed = nullptr;
};

/// Tables for a terminal; `most_steps` of the operators of the largest size, those with most arithmetic first.
std::string print_text(const Answer& answer, size_t most_steps, const Extras& extras = {});
/// One object of schema "serin.plan/1" (README.md).
std::string print_json(const Answer& answer, const Extras& extras = {});
/// A page without scripts and without links to other files, with plots.
std::string print_html(const Answer& answer, const Placement* placement = nullptr);

}  // namespace serin::planner
