// report.h: an answer as text, and as data for programs.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/answer.h"
#include "runtime/planner/observed.h"
#include "runtime/planner/offers.h"
#include "runtime/planner/placement.h"
#include "runtime/planner/task.h"
#include "runtime/planner/template_plan.h"

namespace serin::planner {

/// The template that a model is served by.
struct TemplateReport {
  std::vector<std::string> files;                            ///< the lowest first
  std::string why;                                           ///< it was chosen; empty: it was named
  std::vector<std::pair<std::string, std::string>> why_not;  ///< others of its folder
  std::vector<ExplainedValue> values;
};

/// Parts of a report in addition to the answer: null or empty where nothing was asked.
struct Extras {
  const Placement* placement = nullptr;  ///< of this answer
  const Offers* offers = nullptr;
  std::vector<Note> notes;  ///< of the task file, or of a template
  const TemplateReport* from_template = nullptr;
  bool explain = false;  ///< with the place of each value of the template
  const Observed* observed = nullptr;
};

/// Tables for a terminal; `most_steps` of the operators of the largest size, those with most arithmetic first.
std::string print_text(const Answer& answer, size_t most_steps, const Extras& extras = {});
/// Which template it is, and why; with `values` each value and the place that it comes from.
std::string template_text(const TemplateReport& report, bool values);
/// One object of schema "serin.plan/1" (README.md).
std::string print_json(const Answer& answer, const Extras& extras = {});
/// A page without scripts and without links to other files, with plots.
std::string print_html(const Answer& answer, const Placement* placement = nullptr);

}  // namespace serin::planner
