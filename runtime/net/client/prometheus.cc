// prometheus.cc: https://prometheus.io/docs/prometheus/latest/querying/api/. A query is posted as a form, because it may be longer than a target may be.

#include "runtime/net/prometheus.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "runtime/base/json_at.h"
#include "runtime/base/number.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::net {
namespace {

namespace json = boost::json;

constexpr size_t kMostOfAReason = 200, kMostOfAValue = 40;

/// [<time>, "<value>"]
Result<std::string> read_sample(const json::value* sample) {
  const json::array* const parts = sample ? sample->if_array() : nullptr;
  if (!parts || parts->size() != 2 || !(*parts)[1].is_string()) return Error{Code::kCorrupt, "the answer has no value"};
  return std::string((*parts)[1].get_string());
}

Result<PrometheusSeries> read_series(const json::value& object) {
  PrometheusSeries series;
  if (const json::value* const labels = json_at::find(object, "/metric"); labels && labels->is_object())
    for (const auto& [name, value] : labels->get_object())
      if (value.is_string()) series.labels.emplace(std::string(name), std::string(value.get_string()));
  SERIN_TRY(series.value, read_sample(json_at::find(object, "/value")));
  return series;
}

Error refusal(int status) {
  const char* const remedy = status == 401 || status == 403 ? ": it requires credentials, or other ones" : "";
  return {Code::kUnavailable, fmt::format("the server answers {}{}", status, remedy)};
}

}  // namespace

std::string_view PrometheusSeries::label(std::string_view name) const {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

Result<double> PrometheusSeries::number() const {
  if (const auto value_read = parse_number<double>(value)) return *value_read;
  const bool is_known = value == "NaN" || value.ends_with("Inf");
  return Error{is_known ? Code::kOutOfRange : Code::kCorrupt, fmt::format("the answer is {}", value.substr(0, kMostOfAValue))};
}

Result<double> PrometheusAnswer::one_number() const {
  if (series.size() == 1) return series.front().number();
  return Error{Code::kNotFound, fmt::format("the answer is a {} of {} series, but one number is needed", type, series.size())};
}

Result<PrometheusAnswer> read_prometheus_answer(std::string_view body) {
  Error not_one{Code::kCorrupt, "no answer of Prometheus"};
  boost::system::error_code failed;
  const json::value root = json::parse(body, failed);
  if (failed) return not_one;
  const std::string status = json_at::text(root, "/status");
  if (status == "error")
    return Error{Code::kFailedPrecondition, "the server refuses: " + json_at::text(root, "/error").substr(0, kMostOfAReason)};
  if (status != "success") return not_one;
  PrometheusAnswer answer{.type = json_at::text(root, "/data/resultType"), .series = {}, .warnings = {}};
  const json::value* const result = json_at::find(root, "/data/result");
  if (answer.type == "scalar") {
    answer.series.emplace_back();
    SERIN_TRY(answer.series.back().value, read_sample(result));
  } else if (answer.type == "vector" && result && result->is_array()) {
    for (const json::value& object : result->get_array()) {
      SERIN_TRY(PrometheusSeries series, read_series(object));
      answer.series.push_back(std::move(series));
    }
  } else {
    return Error{Code::kCorrupt, fmt::format("the data of the answer are a '{}', but an instant vector is needed", answer.type)};
  }
  if (const json::value* const warnings = json_at::find(root, "/warnings"); warnings && warnings->is_array())
    for (const json::value& warning : warnings->get_array())
      if (warning.is_string()) answer.warnings.push_back(std::string(warning.get_string()).substr(0, kMostOfAReason));
  return answer;
}

Result<PrometheusAnswer> ask_prometheus(const PrometheusServer& server, const PrometheusQuery& asked) {
  const Url& url = server.server;
  Outgoing request{.method = "POST", .target = (url.path == "/" ? "" : url.path) + "/api/v1/query"};
  request.headers.set("Content-Type", "application/x-www-form-urlencoded");
  if (!server.token.empty()) request.headers.set("Authorization", "Bearer " + server.token);
  std::string form = "query=" + escaped(asked.query);
  if (asked.lookback) form += fmt::format("&lookback_delta={:.3f}", std::chrono::duration<double>(*asked.lookback).count());
  if (asked.time) form += fmt::format("&time={:.3f}", *asked.time);
  request.body = std::make_shared<const std::string>(std::move(form));
  SERIN_TRY(const Response response, fetch(url.origin, request, server.patience, server.tls));
  auto answer = read_prometheus_answer(response.body);
  const bool explains = !answer && answer.error().code == Code::kFailedPrecondition;
  if (response.status / 100 != 2 && !explains) return refusal(response.status);
  return answer;
}

std::string prometheus_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') {
      quoted += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace serin::net
