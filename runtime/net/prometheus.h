// prometheus.h: instant queries to a Prometheus server over its HTTP API, for threads that may wait.
//
//   SERIN_TRY(const net::PrometheusAnswer answer, net::ask_prometheus({.server = *url, .tls = tls}, {"sum(rate(hits_total[5m]))"}));
//   SERIN_TRY(const double value, answer.one_number());
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// One series of an instant query. A scalar is a series without labels.
struct PrometheusSeries {
  std::map<std::string, std::string, std::less<>> labels;
  std::string value;  ///< as the server wrote it: "12.5", "NaN", "+Inf"

  /// Empty: the series does not have the label.
  std::string_view label(std::string_view name) const;
  /// kOutOfRange: it is NaN or infinite. kCorrupt: it is no number.
  Result<double> number() const;
};

struct PrometheusAnswer {
  std::string type;  ///< "vector" or "scalar"
  std::vector<PrometheusSeries> series;
  std::vector<std::string> warnings;  ///< of the server: parts that it could not read

  /// The number of the only series. kNotFound: there is none, or several. Otherwise as number().
  Result<double> one_number() const;
};

/// Reads the body of an answer of /api/v1/query. kFailedPrecondition: the server refuses the query, with its reason. kCorrupt: it is no such answer.
Result<PrometheusAnswer> read_prometheus_answer(std::string_view body);

struct PrometheusServer {
  Url server;                                       ///< the path stands before /api/v1/query
  std::string token = {};                           ///< sent as a bearer token; empty: none
  std::shared_ptr<const TlsContext> tls = nullptr;  ///< for https
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

struct PrometheusQuery {
  std::string query;
  /// Samples that are older do not count. A server that does not know the parameter ignores it. Nothing: the server's own limit.
  std::optional<std::chrono::nanoseconds> lookback = std::nullopt;
  std::optional<double> time = std::nullopt;  ///< at which it is evaluated, in seconds since 1970; nothing: the server's own
};

/// Errors are those of fetch() and read_prometheus_answer(). kUnavailable also names a status such as 401 or 503 without a reason.
Result<PrometheusAnswer> ask_prometheus(const PrometheusServer& server, const PrometheusQuery& asked);

/// The text as a string of PromQL, with its quotes.
std::string prometheus_quoted(std::string_view text);

}  // namespace serin::net
