// registry_text.h: versions of the registry as text and as JSON.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "runtime/registry/registry.h"

namespace serin::cli {

boost::json::object json_of(const std::string& model, const registry::Version& version);
/// One line of a list: "3  2026-11-28T20:45:00Z  1.2 MB  production".
std::string line_of(const registry::Version& version);
/// All there is to say, on several lines.
std::string describe(const std::string& model, const registry::Version& version);

}  // namespace serin::cli
