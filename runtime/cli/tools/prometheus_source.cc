#include "runtime/cli/tools/prometheus_source.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/config.h"
#include "runtime/cli/token_file.h"

namespace serin::cli {
namespace {

constexpr std::string_view kScheme = "prometheus+";
constexpr std::chrono::minutes kUsualWindow{5};
constexpr std::chrono::seconds kShortestWindow{1};
constexpr std::chrono::hours kLongestWindow{24 * 366};

bool is_label(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && (name[0] < '0' || name[0] > '9') && std::ranges::all_of(name, fits);
}

/// "a=b&c=~d" as PromQL has it: a="b",c=~"d". Nothing: it is not of this form.
std::optional<std::string> matchers_of(std::string_view query) {
  std::string all;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos || !is_label(one.substr(0, equals)) || one.find('%') != std::string_view::npos)
      return std::nullopt;
    std::string_view value = one.substr(equals + 1);
    const bool is_pattern = value.starts_with('~');
    if (is_pattern) value.remove_prefix(1);
    all += fmt::format("{}{}={}{}", all.empty() ? "" : ",", one.substr(0, equals), is_pattern ? "~" : "", net::prometheus_quoted(value));
  }
  return all;
}

Result<std::chrono::nanoseconds> window_of(const std::string& text) {
  if (text.empty()) return std::chrono::nanoseconds(kUsualWindow);
  const auto window = config::parse_duration(text);
  if (window && *window >= kShortestWindow && *window <= kLongestWindow && *window % std::chrono::milliseconds(1) == window->zero())
    return *window;
  return invalid(fmt::format("--window {}: must be a duration from 1s to 8784h, such as 5m or 24h", text));
}

}  // namespace

void add_prometheus_flags(CLI::App& command, PrometheusFlags& flags) {
  command.add_option("--window", flags.window, "the last part of time that Prometheus is asked about, e.g. 1h; default: 5m");
  command.add_option("--token-file", flags.token_file, "file with the bearer token for Prometheus; default: none is sent");
  add_tls_flags(command, flags.tls);
}

bool PrometheusSource::is_meant_by(std::string_view address) { return address.starts_with(kScheme); }

Result<PrometheusSource> PrometheusSource::open(std::string flag, const std::string& address, const PrometheusFlags& flags) {
  const auto wrong = [&](std::string_view why) { return invalid(fmt::format("{} {}: {}", flag, address, why)); };
  const size_t question = std::min(address.find('?'), address.size());
  const std::string_view before = std::string_view(address).substr(0, question);
  auto url = is_meant_by(before) ? net::parse_url(before.substr(kScheme.size())) : std::nullopt;
  if (!url) return wrong("is no address such as prometheus+http://127.0.0.1:9090");
  const auto labels = matchers_of(std::string_view(address).substr(std::min(question + 1, address.size())));
  if (!labels) return wrong("labels behind the '?' must be NAME=VALUE or NAME=~PATTERN, with & between them and without %");
  while (url->path.ends_with('/')) url->path.pop_back();
  PrometheusSource source;
  source.flag_ = std::move(flag);
  source.address_ = address;
  source.labels_ = *labels;
  SERIN_TRY(source.window_, window_of(flags.window));
  source.server_.server = *std::move(url);
  SERIN_TRY(source.server_.token, read_token_file(flags.token_file));
  SERIN_TRY(source.server_.tls, client_tls(flags.tls, source.server_.server.origin));
  return source;
}

std::string PrometheusSource::now(std::string_view metric, std::string_view more) const {
  if (labels_.empty() && more.empty()) return std::string(metric);
  return fmt::format("{}{{{}{}{}}}", metric, labels_, labels_.empty() || more.empty() ? "" : ",", more);
}

std::string PrometheusSource::range(std::string_view metric, std::string_view more) const {
  return fmt::format("{}[{}]", now(metric, more), config::print_duration(window_));
}

Result<std::vector<net::PrometheusSeries>> PrometheusSource::ask(const std::string& query) {
  if (!time_) {
    SERIN_TRY(const net::PrometheusAnswer now, answer_to("time()"));
    const auto seconds = now.one_number();
    if (!seconds) return error(seconds.error().message);
    time_ = *seconds;
  }
  SERIN_TRY(net::PrometheusAnswer answer, answer_to(query));
  for (const std::string& warning : answer.warnings)
    if (std::ranges::find(warnings_, warning) == warnings_.end()) warnings_.push_back(warning);
  return std::move(answer.series);
}

Result<net::PrometheusAnswer> PrometheusSource::answer_to(const std::string& query) const {
  auto answer = net::ask_prometheus(server_, {.query = query, .time = time_});
  if (answer) return answer;
  const Code code = answer.error().code;
  const bool is_refused = code == Code::kFailedPrecondition || code == Code::kCorrupt;
  return error(answer.error().message + (is_refused ? fmt::format(" (the query: {})", query) : ""));
}

std::string PrometheusSource::place() const {
  const net::Origin& origin = server_.server.origin;
  return fmt::format("{}:{}{}", origin.host, origin.port, server_.server.path);
}

Error PrometheusSource::error(std::string_view why) const { return {Code::kUnavailable, fmt::format("{} {}: {}", flag_, address_, why)}; }

}  // namespace serin::cli
