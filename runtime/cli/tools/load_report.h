// load_report.h: counts and prints the results of `serin load`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/histogram.h"

namespace serin::cli {

struct LoadCounts {
  uint64_t sent = 0;
  uint64_t ok = 0;  ///< answers with status 200
  /// By status ("429") or by the reason why no answer came ("unavailable", "too_many_in_flight").
  std::map<std::string, uint64_t> errors;
  std::map<std::string, std::string> why;    ///< the first message of each kind of error, for users
  std::map<std::string, uint64_t> versions;  ///< ok answers by x-serin-version, if present
  LatencyHistogram latency;                  ///< latency of ok answers, from the intended start
  std::chrono::nanoseconds slowest{0};
  std::chrono::nanoseconds elapsed{0};  ///< duration of sending

  void failure(std::string_view kind, std::string_view what);
  uint64_t failed() const;
};

/// {"sent", "ok", "errors", "errors_by", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "ok_per_s", "seconds", "versions"}. Latencies
/// are null if no request was answered with 200.
std::string print_json(const LoadCounts& counts);
std::string print_text(const LoadCounts& counts);
/// Returns one line for a terminal, without line end.
std::string print_progress(const LoadCounts& counts);

}  // namespace serin::cli
