#include "runtime/cli/rollout/access_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <ctime>
#include <fstream>
#include <optional>
#include <string_view>

#include "runtime/base/number.h"

namespace serin::cli {
namespace {

namespace json = boost::json;
using rollout::Outcome;
using rollout::Recorded;

constexpr size_t kMostRequests = 2'000'000, kLongestLine = 64 << 10;

Outcome outcome_of(int status) {
  if (status / 100 == 5) return Outcome::kError;
  if (status / 100 == 2) return Outcome::kOk;
  const bool neutral = status == 401 || status == 403 || status == 429 || status == 499 || status / 100 == 3;
  return neutral ? Outcome::kNeutral : Outcome::kRejected;
}

std::optional<Recorded> recorded(std::optional<double> seconds, std::optional<double> status, std::optional<double> latency_seconds) {
  if (!seconds || !status || !latency_seconds || *status < 100 || *status > 599 || *latency_seconds < 0 || *latency_seconds > 86'400)
    return std::nullopt;
  if (std::abs(*seconds) > 9e9) return std::nullopt;
  return Recorded{.at = std::chrono::nanoseconds(std::llround(*seconds * 1e9)),
                  .outcome = outcome_of(static_cast<int>(*status)),
                  .latency = std::chrono::nanoseconds(std::llround(*latency_seconds * 1e9))};
}

/// "2026-02-03T04:05:06.789Z" or with "+01:00": Unix seconds.
std::optional<double> iso_time(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    const char* end = rest + 1;
    while (*end >= '0' && *end <= '9') ++end;
    fraction = parse_number<double>(std::string_view(rest, end)).value_or(0);
    rest = end;
  }
  std::tm zone{};
  if (*rest != '\0' && *rest != 'Z' && ::strptime(rest, "%z", &zone) == nullptr) return std::nullopt;
  return static_cast<double>(::timegm(&parts) - zone.tm_gmtoff) + fraction;
}

std::optional<double> field(const json::object& object, std::initializer_list<std::pair<std::string_view, double>> names) {
  for (const auto& [name, scale] : names) {
    const json::value* value = object.if_contains(name);
    if (value == nullptr) continue;
    if (value->is_number()) return value->to_number<double>() * scale;
    if (!value->is_string()) continue;
    const std::string text(std::string_view(value->as_string()));
    if (const auto plain = parse_number<double>(text)) return *plain * scale;
    if (const auto time = iso_time(text)) return time;
  }
  return std::nullopt;
}

std::optional<Recorded> read_json(std::string_view line) {
  boost::system::error_code failure;
  const json::value value = json::parse(json::string_view(line.data(), line.size()), failure);
  if (failure || !value.is_object()) return std::nullopt;
  const json::object& object = value.as_object();
  return recorded(
      field(object, {{"time", 1}, {"timestamp", 1}, {"@timestamp", 1}, {"ts", 1}, {"start_time", 1}, {"msec", 1}, {"time_iso8601", 1}}),
      field(object, {{"status", 1}, {"status_code", 1}, {"response_code", 1}, {"code", 1}}),
      field(object, {{"latency_ms", 1e-3},
                     {"duration_ms", 1e-3},
                     {"request_time", 1},
                     {"upstream_response_time", 1},
                     {"duration", 1e-3},
                     {"latency", 1}}));
}

/// ... [03/Feb/2026:04:05:06 +0000] "POST / HTTP/1.1" 200 17 "-" "curl" 0.012
std::optional<Recorded> read_combined(std::string_view line) {
  const size_t open = line.find('['), close = line.find(']', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  std::tm parts{};
  const std::string time(line.substr(open + 1, close - open - 1));
  const char* rest = ::strptime(time.c_str(), "%d/%b/%Y:%H:%M:%S %z", &parts);
  if (rest == nullptr) return std::nullopt;
  const auto zone = parts.tm_gmtoff;
  const size_t quote = line.find("\" ", close);
  if (quote == std::string_view::npos) return std::nullopt;
  const std::string_view status = line.substr(quote + 2, line.find(' ', quote + 2) - quote - 2);
  return recorded(static_cast<double>(::timegm(&parts) - zone), parse_number<double>(status),
                  parse_number<double>(line.substr(line.rfind(' ') + 1)));
}

std::optional<Recorded> read_csv(std::string_view line) {
  const size_t first = line.find(','), second = line.find(',', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto milliseconds = parse_number<double>(line.substr(second + 1));
  return recorded(parse_number<double>(line.substr(0, first)), parse_number<double>(line.substr(first + 1, second - first - 1)),
                  milliseconds ? std::optional(*milliseconds / 1e3) : std::nullopt);
}

/// Times of one second each are spread over it; the recording lasts until its next request would have come.
void lay_out(rollout::Recording& recording) {
  auto& requests = recording.requests;
  std::ranges::stable_sort(requests, {}, &Recorded::at);
  const auto begin = requests.front().at;
  for (size_t i = 0; i < requests.size();) {
    size_t end = i;
    while (end < requests.size() && requests[end].at == requests[i].at) ++end;
    const auto gap = end < requests.size() ? requests[end].at - requests[i].at : std::chrono::nanoseconds(std::chrono::seconds(1));
    const auto room = std::min<std::chrono::nanoseconds>(gap, std::chrono::seconds(1));
    const auto at = requests[i].at - begin;
    for (size_t k = i; k < end; ++k) requests[k].at = at + room * static_cast<int64_t>(k - i) / static_cast<int64_t>(end - i);
    i = end;
  }
  const auto span = requests.back().at;
  recording.length = span + std::max<std::chrono::nanoseconds>(span / static_cast<int64_t>(requests.size()), std::chrono::microseconds(1));
}

}  // namespace

Result<AccessLog> read_access_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::kNotFound, fmt::format("{} cannot be read", path)};
  AccessLog log;
  std::string line, first_skipped;
  std::optional<Recorded> (*read)(std::string_view) = nullptr;
  while (std::getline(file, line) && log.recording.requests.size() < kMostRequests) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (read == nullptr) {
      read = line.starts_with('{') ? read_json : line.starts_with("time,status,latency_ms") ? read_csv : read_combined;
      if (read == read_csv) continue;
    }
    ++log.lines;
    const auto request = line.size() <= kLongestLine ? read(line) : std::nullopt;
    if (request) {
      log.recording.requests.push_back(*request);
    } else if (log.skipped++ == 0) {
      first_skipped = line.substr(0, 200);
    }
  }
  if (log.recording.requests.empty() || log.skipped * 2 > log.lines)
    return Error{Code::kInvalidArgument, fmt::format("{}: {} of {} lines have no time, status and latency, such as: {}", path, log.skipped,
                                                     log.lines, first_skipped.empty() ? "(an empty file)" : first_skipped)};
  lay_out(log.recording);
  return log;
}

}  // namespace serin::cli
