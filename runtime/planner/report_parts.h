// report_parts.h: parts of reports that several files write.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "runtime/planner/answer.h"
#include "runtime/planner/placement.h"

namespace serin::planner {

std::string placement_text(const Answer& answer, const Placement& placement);
boost::json::object placement_json(const Placement& placement);

}  // namespace serin::planner
