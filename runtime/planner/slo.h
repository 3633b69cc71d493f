// slo.h: a limit for the latency of a share of the requests: "p99<=50ms".
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::planner {

struct Slo {
  double share = 0.99;  ///< of the requests that are answered in time; below 1
  double seconds = 0;

  std::string print() const;  ///< "p99 <= 50ms"
  friend bool operator==(const Slo&, const Slo&) = default;
};

/// "p99<=50ms", "p99.9 < 20 ms", or "50ms", which speaks of p99. kInvalidArgument says how it is written.
Result<Slo> parse_slo(std::string_view text);

}  // namespace serin::planner
