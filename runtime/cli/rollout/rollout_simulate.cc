// rollout_simulate.cc: `serin rollout simulate`: runs many rollouts on the traffic of an access log, through the judge of real rollouts. It
// prints how often a healthy canary is rolled back, how long it takes to 100 %, and the cost of a broken one until it is found.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "router/rollout/rehearsal.h"
#include "router/rollout/spec.h"
#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/rollout/access_log.h"
#include "runtime/cli/rollout/rollout_commands.h"
#include "runtime/net/http.h"

namespace serin::cli {
namespace {

struct SimulateOptions {
  std::string spec, log;
  double rate = 0;  ///< requests a second of assumed traffic; 0: the log's
  size_t runs = 100;
  uint64_t most_requests = 2'000'000;  ///< of one rollout
  bool json = false;
};

using rollout::Phase;
using rollout::Rehearsal;

struct Case {
  const char* name;
  rollout::Ailment ailment;
};
constexpr Case kCases[] = {{"healthy", {}},
                           {"errors 1 %", {.errors = 0.01}},
                           {"errors 5 %", {.errors = 0.05}},
                           {"errors 50 %", {.errors = 0.5}},
                           {"latency x1.3", {.slower = 1.3}},
                           {"latency x2", {.slower = 2}},
                           {"latency x10", {.slower = 10}},
                           {"p99 x3", {.tail = 0.03}},
                           {"leak 10 %/min", {.leak = 0.1}},
                           {"CPU x2", {.cpu = 2}}};

struct Summary {
  std::string name;
  size_t runs = 0, rolled_back = 0, promoted = 0, inconclusive = 0;
  std::array<double, 2> seconds{}, canary_requests{}, canary_failures{};  ///< median and 90 % of those that ended as most did
};

/// Median and 90 % of a list that is not empty.
std::array<double, 2> middle_and_most(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) { return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))]; };
  return {at(0.5), at(0.9)};
}

Summary summarise(const char* name, const std::vector<Rehearsal>& runs) {
  Summary summary{.name = name, .runs = runs.size()};
  std::vector<double> seconds, requests, failures;
  for (const Rehearsal& run : runs) {
    summary.rolled_back += run.phase == Phase::kRolledBack ? 1 : 0;
    summary.promoted += run.phase == Phase::kSucceeded ? 1 : 0;
    summary.inconclusive += run.phase != Phase::kRolledBack && run.phase != Phase::kSucceeded ? 1 : 0;
    seconds.push_back(run.seconds);
    requests.push_back(static_cast<double>(run.canary_requests));
    failures.push_back(static_cast<double>(run.canary_failures));
  }
  summary.seconds = middle_and_most(std::move(seconds));
  summary.canary_requests = middle_and_most(std::move(requests));
  summary.canary_failures = middle_and_most(std::move(failures));
  return summary;
}

std::string line_of(const Summary& s) {
  return fmt::format("{:<14} {:>6} {:>9} {:>13} {:>10.0f} / {:<8.0f} {:>8.0f} / {:<8.0f} {:>6.0f} / {:<6.0f}\n", s.name, s.rolled_back,
                     s.promoted, s.inconclusive, s.seconds[0], s.seconds[1], s.canary_requests[0], s.canary_requests[1],
                     s.canary_failures[0], s.canary_failures[1]);
}

std::string json_of(const Summary& s) {
  return fmt::format(
      R"({{"case":{},"runs":{},"rolled_back":{},"promoted":{},"inconclusive":{},"seconds":[{:.3f},{:.3f}],"canary_requests":[{},{}],"canary_failures":[{},{}]}})",
      net::json_quote(s.name), s.runs, s.rolled_back, s.promoted, s.inconclusive, s.seconds[0], s.seconds[1], s.canary_requests[0],
      s.canary_requests[1], s.canary_failures[0], s.canary_failures[1]);
}

Result<rollout::Spec> read_spec(const std::string& path) {
  SERIN_TRY(const config::Node document, config::Node::load(path));
  SERIN_TRY(rollout::Spec spec, rollout::parse_spec(document));
  if (spec.sticky.on() && spec.sticky.salt.empty()) spec.sticky.salt = "rehearsal";
  spec.guard.prometheus.clear();  // nobody to ask
  return spec;
}

/// Requests at random times, 0.1 % of them failed. Latencies are lognormal with a median of 20 ms and sigma 0.5; 1 % take four times as long.
AccessLog assumed_traffic(double per_second) {
  constexpr size_t kRequests = 20'000;
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(per_second);
  std::lognormal_distribution<double> milliseconds(std::log(20.0), 0.5);
  std::uniform_real_distribution<double> uniform;
  AccessLog log;
  double at = 0;
  for (size_t i = 0; i < kRequests; ++i) {
    at += gap(random);
    const double latency = milliseconds(random) * (uniform(random) < 0.01 ? 4 : 1);
    log.recording.requests.push_back({.at = std::chrono::nanoseconds(std::llround(at * 1e9)),
                                      .outcome = uniform(random) < 0.001 ? rollout::Outcome::kError : rollout::Outcome::kOk,
                                      .latency = std::chrono::nanoseconds(std::llround(latency * 1e6))});
  }
  log.recording.length = std::chrono::nanoseconds(std::llround((at + gap(random)) * 1e9));
  log.recording.known_before = false;
  log.lines = kRequests;
  return log;
}

void print_traffic(const AccessLog& log) {
  rollout::Baseline latencies;
  size_t failures = 0;
  for (const rollout::Recorded& request : log.recording.requests) {
    latencies.record(request.latency);
    failures += rollout::is_failure(request.outcome) ? 1 : 0;
  }
  const double seconds = std::chrono::duration<double>(log.recording.length).count();
  const auto count = static_cast<double>(log.recording.requests.size());
  const auto ms = [&](double q) { return std::chrono::duration<double, std::milli>(latencies.quantile(q)).count(); };
  const double rate = count / seconds;
  std::printf("%zu requests in %.1f s (%s a second), %.3g %% failed, p50 %.3g ms, p99 %.3g ms", log.recording.requests.size(), seconds,
              (rate < 1 ? fmt::format("{:.2g}", rate) : fmt::format("{:.1f}", rate)).c_str(), 100 * static_cast<double>(failures) / count,
              ms(0.5), ms(0.99));
  std::printf(log.skipped > 0 ? "; %zu lines skipped\n" : "\n", log.skipped);
}

int run_simulate(const SimulateOptions& options) {
  const auto refuse = [](const Error& error) {
    std::fprintf(stderr, "serin rollout simulate: %s\n", error.message.c_str());
    return kUsage;
  };
  if (options.log.empty() && options.rate == 0)
    return refuse(Error{Code::kInvalidArgument, "give the traffic: --log FILE or --rate NUMBER"});
  const auto spec = read_spec(options.spec);
  if (!spec) return refuse(spec.error());
  const auto log = options.rate > 0 ? Result<AccessLog>(assumed_traffic(options.rate)) : read_access_log(options.log);
  if (!log) return refuse(log.error());
  if (!options.json) {
    print_traffic(*log);
    std::printf("%zu rollouts each; seconds to the end, requests on the canary and its failures: median / 90 %%\n", options.runs);
    std::printf("canary         rolled  promoted  inconclusive    seconds              requests            failures\n");
    std::printf("                 back\n");
  }
  std::string list;
  for (const Case& one : kCases) {
    std::vector<Rehearsal> runs;
    for (uint64_t seed = 1; seed <= options.runs; ++seed)
      runs.push_back(rollout::rehearse(*spec, log->recording, one.ailment, seed, options.most_requests));
    const Summary summary = summarise(one.name, runs);
    list += (list.empty() ? "" : ",") + json_of(summary);
    if (!options.json) std::fputs(line_of(summary).c_str(), stdout);
    std::fflush(stdout);
  }
  if (options.json)
    std::printf("{\"requests\":%zu,\"seconds\":%.3f,\"false_rollback_bound\":%g,\"cases\":[%s]}\n", log->recording.requests.size(),
                std::chrono::duration<double>(log->recording.length).count(), spec->guard.false_rollback, list.c_str());
  else
    std::printf(
        "A healthy canary is rolled back with probability at most %g %% whatever the traffic. Outputs are assumed to agree; where the "
        "shield has\nits budget, clients see stable's answer instead of a failure of the canary.\n",
        100 * spec->guard.false_rollback);
  return kYes;
}

}  // namespace

void add_simulate(CLI::App& group, int& exit_code) {
  auto* simulate =
      group.add_subcommand("simulate", "Simulate many rollouts on the traffic of an access log, with healthy and with broken canaries");
  auto simulated = std::make_shared<SimulateOptions>();
  simulate->add_option("spec", simulated->spec, "document of kind Rollout")->required();
  auto* log =
      simulate->add_option("--log", simulated->log, "access log: JSON lines, the combined format followed by $request_time, or CSV");
  simulate->add_option("--rate", simulated->rate, "without a log: assume so many requests a second, with a median of 20 ms")
      ->check(CLI::Range(0.001, 100'000.0))
      ->excludes(log);
  simulate->add_option("--runs", simulated->runs, "rollouts of each kind of canary")->capture_default_str()->check(CLI::Range(1, 100'000));
  simulate->add_option("--most-requests", simulated->most_requests, "most requests of one rollout; then it counts as inconclusive")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  simulate->add_flag("--json", simulated->json, "print one JSON object");
  simulate->callback([simulated, &exit_code] { exit_code = run_simulate(*simulated); });
}

}  // namespace serin::cli
