// external_metrics.cc: the paths of the API, and its answers in the words of Kubernetes (k8s.io/metrics/pkg/apis/external_metrics/v1beta1).

#include "router/scaling/external_metrics.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "router/scaling/label_selector.h"
#include "router/scaling/load_metric.h"
#include "runtime/base/json_quote.h"
#include "runtime/base/number.h"

namespace serin::router {
namespace {

using net::Request;
using net::Response;

constexpr std::string_view kGroups = "/apis", kGroup = "/apis/external.metrics.k8s.io", kVersion = "/apis/external.metrics.k8s.io/v1beta1",
                           kNamespaces = "/apis/external.metrics.k8s.io/v1beta1/namespaces/";

constexpr std::string_view kGroupJson =
    R"("name":"external.metrics.k8s.io","versions":[{"groupVersion":"external.metrics.k8s.io/v1beta1","version":"v1beta1"}],)"
    R"("preferredVersion":{"groupVersion":"external.metrics.k8s.io/v1beta1","version":"v1beta1"})";

std::string json_text(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
  return out;
}

Response json(std::string body) {
  Response response;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

/// A Status, which clients of Kubernetes print.
Response failure(int status, std::string_view reason, std::string_view message) {
  Response response =
      json(fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{},"reason":"{}","code":{}}})",
                       json_text(message), reason, status));
  response.status = status;
  return response;
}

std::string resources() {
  std::string list;
  for (const LoadMetric& metric : load_metrics())
    list += fmt::format(R"({}{{"name":"{}","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}})",
                        list.empty() ? "" : ",", metric.name);
  return fmt::format(R"({{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"external.metrics.k8s.io/v1beta1","resources":[{}]}})",
                     list);
}

/// A quantity of Kubernetes: whole, or in thousandths.
std::string quantity(double value) {
  const auto thousandths = static_cast<int64_t>(std::llround(value * 1000));
  return thousandths % 1000 == 0 ? fmt::format("{}", thousandths / 1000) : fmt::format("{}m", thousandths);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Nothing: a broken escape.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

/// The value of the first parameter of that name; other parameters, such as `timeout`, do not matter here.
std::string_view parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return one.substr(name.size() + 1);
    query.remove_prefix(std::min(one.size() + 1, query.size()));
  }
  return {};
}

}  // namespace

Response ExternalMetrics::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    Response refused = failure(405, "MethodNotAllowed", "these metrics can only be read");
    refused.headers.add("Allow", "GET, HEAD");
    return refused;
  }
  const std::string_view path = request.path;
  if (path == kGroups) return json(fmt::format(R"({{"kind":"APIGroupList","apiVersion":"v1","groups":[{{{}}}]}})", kGroupJson));
  if (path == kGroup) return json(fmt::format(R"({{"kind":"APIGroup","apiVersion":"v1",{}}})", kGroupJson));
  if (path == kVersion) return json(resources());
  if (path.starts_with(kNamespaces)) {
    const std::string_view rest = path.substr(kNamespaces.size());
    const size_t slash = rest.find('/');
    if (slash != std::string_view::npos && slash > 0) return values(rest.substr(slash + 1), request.query);
  }
  return failure(404, "NotFound", fmt::format("nothing is at {}", path));
}

Response ExternalMetrics::values(std::string_view name, std::string_view query) const {
  const LoadMetric* metric = find_load_metric(name);
  if (metric == nullptr) return failure(404, "NotFound", fmt::format("no metric {}", name));
  const auto text = decoded(parameter(query, "labelSelector"));
  const auto selector = LabelSelector::parse(text ? *text : "");
  if (!text || !selector) return failure(400, "BadRequest", text ? selector.error().message : "labelSelector: has a broken escape");
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  std::string items;
  for (const VersionLoad& load : loads_()) {
    if (!selector->matches({{"service", load.service}, {"version", load.version}})) continue;
    items += fmt::format(
        R"({}{{"metricName":"{}","metricLabels":{{"service":{},"version":{}}},"timestamp":"{:%Y-%m-%dT%H:%M:%SZ}","value":"{}"}})",
        items.empty() ? "" : ",", metric->name, json_text(load.service), json_text(load.version), now, quantity(metric->value(load)));
  }
  return json(fmt::format(
      R"({{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{{}},"items":[{}]}})", items));
}

}  // namespace serin::router
