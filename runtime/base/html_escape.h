// html_escape.h: writes text as text of an HTML page, or as the value of an attribute in quotes.
#pragma once

#include <string>
#include <string_view>

namespace serin {

std::string html_escaped(std::string_view text);

}  // namespace serin
