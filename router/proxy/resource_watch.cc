// resource_watch.cc: all healthy endpoints of both arms at once, then a pause. A round is told when every endpoint has answered or failed.

#include "router/proxy/resource_watch.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "router/config/config.h"
#include "router/proxy/metrics_page.h"
#include "runtime/base/number.h"

namespace serin::router {
namespace {

using rollout::Arm;

constexpr size_t kLargestPage = size_t{4} << 20;
constexpr std::chrono::seconds kLongestWait{2};
constexpr std::chrono::nanoseconds kShortestWait{500'000'000};
constexpr int kIdlePause = 12;    // intervals between two rounds without a rollout
constexpr double kNewIdle = 0.3;  // weight of the latest measurement
constexpr int kOk = 200;

}  // namespace

struct ResourceWatch::Round {
  rollout::ResourceRound told;
  bool of_rollout = false;
  size_t missing = 1;                                                 // answers; one is this round's own, until all are asked
  std::array<std::set<std::pair<std::string, uint16_t>>, 2> origins;  // by arm
};

ResourceWatch::ResourceWatch(net::Loop& loop, Service& service) : loop_(loop), service_(service) { ask(); }

void ResourceWatch::ask() {
  spec_ = service_.controller->spec(service_.index);
  const Split split = service_.controller->split(service_.index);
  const auto round = std::make_shared<Round>();
  round->told.epoch = split.epoch;
  round->of_rollout = split.canary != Split::kNoCanary;
  const auto now_exists = [&](const std::unique_ptr<Source>& source) { return source->endpoint.use_count() > 1; };
  std::erase_if(sources_, [&](const auto& source) { return !now_exists(source); });
  if (spec_->guard.resources.on) {
    const size_t baseline = spec_->baseline.empty() ? Split::kNoCanary : version_index(*service_.config, spec_->baseline);
    const size_t compared = baseline == Split::kNoCanary ? split.stable : baseline;
    for (size_t version = 0; version < service_.versions.size(); ++version) {
      if (round->of_rollout && version == compared) ask_arm(round, version, Arm::kStable);
      if (round->of_rollout ? version == split.canary : version != split.stable) ask_arm(round, version, Arm::kCanary);
    }
  }
  if (--round->missing == 0) finish(*round);
}

void ResourceWatch::ask_arm(const std::shared_ptr<Round>& round, size_t version, Arm arm) {
  for (const auto& endpoint : *service_.versions[version]->list()) {
    if (!endpoint->healthy) continue;
    ++(arm == Arm::kCanary ? round->told.asked_canary : round->told.asked_stable);
    const net::Origin& origin = endpoint->config.origin;
    round->origins[static_cast<size_t>(arm)].emplace(origin.host, origin.port);
    if (!endpoint->config.http && spec_->guard.resources.port == 0) {  // it speaks gRPC only
      round->told.samples.push_back({.arm = arm, .endpoint = endpoint->index});
      continue;
    }
    ++round->missing;
    ask_source(round, source_of(endpoint), arm);
  }
}

void ResourceWatch::ask_source(const std::shared_ptr<Round>& round, Source& source, Arm arm) {
  const rollout::ResourceGuard& asked = spec_->guard.resources;
  const auto wait = std::min<std::chrono::nanoseconds>(kLongestWait, std::max(asked.interval, kShortestWait));
  source.client.send(origin_of(source), {.target = asked.path}, wait, [this, round, &source, arm](const Result<net::Response>& answer) {
    if (follow(source, answer)) return ask_source(round, source, arm);
    answered(round, source, arm, answer);
  });
}

/// Whether the answer points to another port of the same host (`serin serve`), which is then asked instead.
bool ResourceWatch::follow(Source& source, const Result<net::Response>& answer) const {
  if (source.pointed_to != 0) {
    if (!answer) source.pointed_to = 0;  // after a restart it may be another one
    return false;
  }
  if (!answer || answer->status == kOk || spec_->guard.resources.port != 0) return false;
  source.pointed_to = parse_number<uint16_t>(answer->headers.get("x-serin-metrics-port")).value_or(0);
  return source.pointed_to != 0;
}

net::Origin ResourceWatch::origin_of(const Source& source) const {
  net::Origin origin = source.endpoint->config.origin;
  if (const uint16_t port = spec_->guard.resources.port; port != 0) origin.port = port;
  if (source.pointed_to == 0) return origin;
  origin.port = source.pointed_to;
  origin.secure = false;
  return origin;
}

ResourceWatch::Source& ResourceWatch::source_of(const std::shared_ptr<EndpointState>& endpoint) {
  const auto known = std::ranges::find(sources_, endpoint, [](const auto& source) { return source->endpoint; });
  if (known != sources_.end()) return **known;
  net::ClientOptions options = endpoint->client_options(/*grpc=*/false);
  options.response_bytes = kLargestPage;
  sources_.push_back(std::make_unique<Source>(loop_, options));
  sources_.back()->endpoint = endpoint;
  return *sources_.back();
}

void ResourceWatch::answered(const std::shared_ptr<Round>& round, Source& source, Arm arm, const Result<net::Response>& answer) {
  const bool silent = !answer && answer.error().code != Code::kTooLarge && answer.error().code != Code::kCorrupt;
  if (!silent) {
    const rollout::ResourceGuard& asked = spec_->guard.resources;
    const std::array<std::string_view, 8> names = {asked.memory,
                                                   asked.descriptors,
                                                   asked.gpu,
                                                   asked.cpu,
                                                   asked.requests,
                                                   "process_max_fds",
                                                   "nv_gpu_memory_total_bytes",
                                                   "process_start_time_seconds"};
    const bool page = answer && answer->status == kOk;
    const auto values = read_metrics(page ? std::string_view(answer->body) : std::string_view(), names);
    const uint64_t requests = source.endpoint->requests.load(std::memory_order_relaxed);
    rollout::ResourceSample sample{.arm = arm,
                                   .endpoint = source.endpoint->index,
                                   .memory = values[0],
                                   .descriptors = values[1],
                                   .most_descriptors = values[5],
                                   .gpu = values[2],
                                   .most_gpu = values[6],
                                   .cpu_seconds = values[3],
                                   .started = values[7],
                                   .requests = values[4].value_or(static_cast<double>(requests))};
    learn_idle(source, sample, requests);
    round->told.samples.push_back(sample);
  }
  if (--round->missing == 0) finish(*round);
}

/// What it spent between two pages without a request of this router.
void ResourceWatch::learn_idle(Source& source, rollout::ResourceSample& now, uint64_t requests) const {
  const Time at = std::chrono::steady_clock::now();
  const bool same_process = source.last && source.last->cpu_seconds && now.cpu_seconds &&
                            rollout::same_start(source.last->started, now.started) && *now.cpu_seconds >= *source.last->cpu_seconds;
  if (source.last && !same_process) source.idle_cpu.reset();
  if (same_process && source.last->requests == now.requests && source.last_requests == requests && source.endpoint->in_flight == 0) {
    const double spent = (*now.cpu_seconds - *source.last->cpu_seconds) / std::chrono::duration<double>(at - source.last_at).count();
    source.idle_cpu = source.idle_cpu ? (1 - kNewIdle) * *source.idle_cpu + kNewIdle * spent : spent;
  }
  now.idle_cpu = source.idle_cpu;
  source.last = now;
  source.last_requests = requests;
  source.last_at = at;
}

void ResourceWatch::finish(Round& round) {
  const auto& [stable, canary] = round.origins;
  round.told.one_process = std::ranges::any_of(canary, [&](const auto& origin) { return stable.contains(origin); });
  if (round.of_rollout && spec_->guard.resources.on) service_.controller->observe(service_.index, std::move(round.told));
  const auto interval = spec_->guard.resources.interval;
  timer_ = loop_.after(round.of_rollout ? interval : std::min<std::chrono::nanoseconds>(kIdlePause * interval, std::chrono::minutes(1)),
                       [this] { ask(); });
}

}  // namespace serin::router
