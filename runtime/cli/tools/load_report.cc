// load_report.cc: prints the same numbers as text for users and as JSON for pipelines.

#include "runtime/cli/tools/load_report.h"

#include <fmt/format.h>

#include "runtime/net/http.h"

namespace serin::cli {
namespace {

constexpr size_t kLongestRemark = 160;

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

std::string rows(std::string_view title, const std::map<std::string, uint64_t>& numbers,
                 const std::map<std::string, std::string>& remarks = {}) {
  std::string out;
  for (const auto& [name, number] : numbers) {
    const auto remark = remarks.find(name);
    const std::string_view said = remark == remarks.end() ? "" : std::string_view(remark->second);
    out += fmt::format("{:<10} {:<20} {}{}{}\n", title, name, number, said.empty() ? "" : "  ", said);
    title = "";
  }
  return out;
}

/// "p50 0.166 ms   p90 ...": nothing was fast where nothing was answered.
std::string latencies(const LoadCounts& counts) {
  if (counts.ok == 0) return "none: no request was answered with 200";
  return fmt::format("p50 {:.3f} ms   p90 {:.3f} ms   p99 {:.3f} ms   p99.9 {:.3f} ms   max {:.3f} ms", quantile_ms(counts, 0.5),
                     quantile_ms(counts, 0.9), quantile_ms(counts, 0.99), quantile_ms(counts, 0.999), ms(counts.slowest));
}

std::string json_ms(const LoadCounts& counts, double value) { return counts.ok ? fmt::format("{:.3f}", value) : "null"; }

}  // namespace

void LoadCounts::failure(std::string_view kind, std::string_view what) {
  if (++errors[std::string(kind)] > 1) return;
  std::string sentence(what.substr(0, kLongestRemark));
  for (char& c : sentence)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';  // it comes from a server: no line ends, no escape sequences
  why[std::string(kind)] = std::move(sentence);
}

uint64_t LoadCounts::failed() const {
  uint64_t sum = 0;
  for (const auto& [kind, number] : errors) sum += number;
  return sum;
}

std::string print_json(const LoadCounts& counts) {
  return fmt::format(
      R"({{"sent": {}, "ok": {}, "errors": {}, "errors_by": {}, "p50_ms": {}, "p90_ms": {}, "p99_ms": {}, "p999_ms": {}, "max_ms": {}, "ok_per_s": {:.2f}, "seconds": {:.3f}, "versions": {}}})"
      "\n",
      counts.sent, counts.ok, counts.failed(), json_object(counts.errors), json_ms(counts, quantile_ms(counts, 0.5)),
      json_ms(counts, quantile_ms(counts, 0.9)), json_ms(counts, quantile_ms(counts, 0.99)), json_ms(counts, quantile_ms(counts, 0.999)),
      json_ms(counts, ms(counts.slowest)), ok_per_second(counts), seconds(counts), json_object(counts.versions));
}

std::string print_text(const LoadCounts& counts) {
  return fmt::format(
             "sent       {}\n"
             "ok         {}  ({:.1f} a second over {:.1f} s)\n"
             "errors     {}\n",
             counts.sent, counts.ok, ok_per_second(counts), seconds(counts), counts.failed()) +
         rows("  by kind", counts.errors, counts.why) + fmt::format("latency    {}\n", latencies(counts)) +
         rows("versions", counts.versions);
}

std::string print_progress(const LoadCounts& counts) {
  return fmt::format("{:4.0f} s   sent {}   ok {}   errors {}   p50 {:.2f} ms   p99 {:.2f} ms", seconds(counts), counts.sent, counts.ok,
                     counts.failed(), quantile_ms(counts, 0.5), quantile_ms(counts, 0.99));
}

}  // namespace serin::cli
