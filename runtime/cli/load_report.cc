// load_report.cc: the same numbers for people and for pipelines.

#include "runtime/cli/load_report.h"

#include <fmt/format.h>

#include "runtime/net/http.h"

namespace serin::cli {
namespace {

double ms(std::chrono::nanoseconds duration) { return static_cast<double>(duration.count()) / 1e6; }

/// Quantiles come from buckets; none may exceed the slowest answer seen.
double quantile_ms(const LoadCounts& counts, double q) { return ms(std::min(counts.latency.quantile(q), counts.slowest)); }

double seconds(const LoadCounts& counts) { return static_cast<double>(counts.elapsed.count()) / 1e9; }
double ok_per_second(const LoadCounts& counts) { return counts.elapsed.count() ? static_cast<double>(counts.ok) / seconds(counts) : 0; }

std::string json_object(const std::map<std::string, uint64_t>& numbers) {
  std::string out;
  for (const auto& [name, number] : numbers) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", net::json_quote(name), number);
  return "{" + out + "}";
}

std::string rows(std::string_view title, const std::map<std::string, uint64_t>& numbers) {
  std::string out;
  for (const auto& [name, number] : numbers) {
    out += fmt::format("{:<10} {:<20} {}\n", title, name, number);
    title = "";
  }
  return out;
}

}  // namespace

uint64_t LoadCounts::failed() const {
  uint64_t sum = 0;
  for (const auto& [kind, number] : errors) sum += number;
  return sum;
}

std::string print_json(const LoadCounts& counts) {
  return fmt::format(
      R"({{"sent": {}, "ok": {}, "errors": {}, "errors_by": {}, "p50_ms": {:.3f}, "p90_ms": {:.3f}, "p99_ms": {:.3f}, "p999_ms": {:.3f}, "max_ms": {:.3f}, "ok_per_s": {:.2f}, "seconds": {:.3f}, "versions": {}}})"
      "\n",
      counts.sent, counts.ok, counts.failed(), json_object(counts.errors), quantile_ms(counts, 0.5), quantile_ms(counts, 0.9),
      quantile_ms(counts, 0.99), quantile_ms(counts, 0.999), ms(counts.slowest), ok_per_second(counts), seconds(counts),
      json_object(counts.versions));
}

std::string print_text(const LoadCounts& counts) {
  return fmt::format(
             "sent       {}\n"
             "ok         {}  ({:.1f} a second over {:.1f} s)\n"
             "errors     {}\n",
             counts.sent, counts.ok, ok_per_second(counts), seconds(counts), counts.failed()) +
         rows("  by kind", counts.errors) +
         fmt::format("latency    p50 {:.3f} ms   p90 {:.3f} ms   p99 {:.3f} ms   p99.9 {:.3f} ms   max {:.3f} ms\n",
                     quantile_ms(counts, 0.5), quantile_ms(counts, 0.9), quantile_ms(counts, 0.99), quantile_ms(counts, 0.999),
                     ms(counts.slowest)) +
         rows("versions", counts.versions);
}

std::string print_progress(const LoadCounts& counts) {
  return fmt::format("{:4.0f} s   sent {}   ok {}   errors {}   p50 {:.2f} ms   p99 {:.2f} ms", seconds(counts), counts.sent, counts.ok,
                     counts.failed(), quantile_ms(counts, 0.5), quantile_ms(counts, 0.99));
}

}  // namespace serin::cli
