#include "runtime/base/schema_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace serin::schema {

void append_number(std::string& out, double value, const Format& format) {
  const double finite = std::isfinite(value) ? value : 0;
  if (format.decimals >= 0)
    fmt::format_to(std::back_inserter(out), "{:.{}f}", finite, format.decimals);
  else if (format.digits > 0)
    fmt::format_to(std::back_inserter(out), "{:.{}g}", finite, format.digits);
  else
    fmt::format_to(std::back_inserter(out), "{}", finite);
}

void append_integer(std::string& out, int64_t value) { fmt::format_to(std::back_inserter(out), "{}", value); }
void append_integer(std::string& out, uint64_t value) { fmt::format_to(std::back_inserter(out), "{}", value); }

}  // namespace serin::schema
