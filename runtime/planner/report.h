// report.h: an answer as text, and as data for programs.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/planner/answer.h"

namespace serin::planner {

/// Tables for a terminal; `most_steps` of the operators of the largest size, those with most arithmetic first.
std::string print_text(const Answer& answer, size_t most_steps);
/// One object of schema "serin.plan/1" (README.md).
std::string print_json(const Answer& answer);

}  // namespace serin::planner
