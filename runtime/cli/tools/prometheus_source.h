// prometheus_source.h: a Prometheus server that `serin plan` asks about servers and cards that run.
//
//   auto source = PrometheusSource::open("--observe", "prometheus+http://prometheus:9090/?namespace=prod", flags);
//   auto series = source->ask(fmt::format("max(max_over_time({}))", source->range("serin_model_weight_bytes")));
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/net/prometheus.h"

namespace serin::cli {

struct PrometheusFlags {
  std::string window;      ///< "1h"; empty: the default
  std::string token_file;  ///< empty: no token is sent
  TlsFlags tls;
};

/// --window, --token-file, and add_tls_flags.
void add_prometheus_flags(CLI::App& command, PrometheusFlags& flags);

class PrometheusSource {
 public:
  /// Whether an address names a Prometheus server: prometheus+http:// or prometheus+https://.
  static bool is_meant_by(std::string_view address);

  /// `flag` stands in errors. The address may end with labels that all series must have: ?namespace=prod&pod=~serin-.*
  /// kInvalidArgument: the address, the window or a certificate is wrong.
  static Result<PrometheusSource> open(std::string flag, const std::string& address, const PrometheusFlags& flags);

  /// metric{labels of the address, `more`}, as it is now and over the window.
  std::string now(std::string_view metric, std::string_view more = "") const;
  std::string range(std::string_view metric, std::string_view more = "") const;

  /// All queries are evaluated at one time, that of the first one by the server's clock: sums of counters can then be divided by each other.
  /// kUnavailable: there is no answer, or a refusal; the message names the address, and the query if that was refused.
  Result<std::vector<net::PrometheusSeries>> ask(const std::string& query);

  /// Reasons of the server why answers are not complete, each once.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::chrono::nanoseconds window() const { return window_; }
  /// "HOST:PORT"
  std::string place() const;
  Error error(std::string_view why) const;

 private:
  Result<net::PrometheusAnswer> answer_to(const std::string& query) const;

  std::string flag_, address_, labels_;  // `labels_`: as PromQL has them between braces
  net::PrometheusServer server_;
  std::chrono::nanoseconds window_{};
  std::optional<double> time_;  // of the queries; nothing: none was sent
  std::vector<std::string> warnings_;
};

}  // namespace serin::cli
