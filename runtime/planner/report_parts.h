// report_parts.h: parts of reports that several files write.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "runtime/planner/answer.h"
#include "runtime/planner/offers.h"
#include "runtime/planner/placement.h"
#include "runtime/planner/report.h"
#include "runtime/planner/task.h"

namespace serin::planner {

std::string placement_text(const Answer& answer, const Placement& placement);
boost::json::object placement_json(const Placement& placement);
boost::json::object template_json(const TemplateReport& report);
std::string notes_text(const std::vector<Note>& notes);
std::string offers_text(const Offers& offers);
boost::json::object offers_json(const Offers& offers, const std::vector<Note>& notes);

}  // namespace serin::planner
