// report.h: an answer as text, and as data for programs.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/planner/answer.h"
#include "runtime/planner/placement.h"

namespace serin::planner {

/// Tables for a terminal; `most_steps` of the operators of the largest size, those with most arithmetic first. `placement`: of
/// this answer.
std::string print_text(const Answer& answer, size_t most_steps, const Placement* placement = nullptr);
/// One object of schema "serin.plan/1" (README.md).
std::string print_json(const Answer& answer, const Placement* placement = nullptr);
/// A page without scripts and without links to other files, with plots.
std::string print_html(const Answer& answer, const Placement* placement = nullptr);

}  // namespace serin::planner
