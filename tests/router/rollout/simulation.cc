#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "router/rollout/draw.h"
#include "runtime/base/stable_hash.h"

namespace serin::rollout {
namespace {

constexpr std::chrono::nanoseconds kBetweenRequests{5'000'000};
constexpr uint64_t kRequestsPerTick = 50;
constexpr size_t kLargestBatchAfterStall = 32;
constexpr uint64_t kWaveLength = 2'000;

uint64_t rotated(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {  // splitmix64, as its authors advise
    seed += 0x9e3779b97f4a7c15;
    uint64_t x = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    word = x ^ (x >> 31);
  }
}

uint64_t Random::next() {
  const uint64_t result = rotated(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = rotated(state_[3], 45);
  return result;
}

const std::vector<std::chrono::nanoseconds>& latencies() {
  static const std::vector<std::chrono::nanoseconds> table = [] {
    std::vector<std::chrono::nanoseconds> draws;
    Random random(7);
    for (int i = 0; i < 1 << 16; ++i) {
      const double normal = std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * std::numbers::pi * random.uniform());
      const double tail = random.chance(0.01) ? 4 : 1;
      draws.emplace_back(static_cast<int64_t>(20e6 * std::exp(0.5 * normal) * tail));
    }
    return draws;
  }();
  return table;
}

const Baseline& simulated_baseline() {
  static const Baseline baseline = [] {
    Baseline histogram;
    Random random(8);
    for (int i = 0; i < 20'000; ++i) histogram.record(latencies()[random.below(latencies().size())]);
    return histogram;
  }();
  return baseline;
}

Simulation::Simulation(Spec spec, const Fault& fault, uint64_t seed)
    : fault_(fault),
      seed_(seed),
      random_(seed),
      rollout_(Rollout::start(std::move(spec), "s-1", 1, fault.known_before ? simulated_baseline() : Baseline(), now_)) {
  for (Endpoint& endpoint : endpoints_) endpoint.dies = after(fault_.killed_every);
  next_reset_ = after(fault_.reset_every);
}

void Simulation::run(uint64_t requests) {
  while (requests_ < requests && !is_over(rollout_.state().phase)) {
    if (takes_time()) let_end(now_);
    if (fault_.stall_every > 0 && requests_ % fault_.stall_every == 0) stall();
    request();
    ++requests_;
    now_ += kBetweenRequests;
    if (requests_ % kRequestsPerTick == 0) rollout_.tick(now_);
    if (fault_.change_weight_every > 0 && requests_ % fault_.change_weight_every == 0)
      (void)rollout_.set_weight(static_cast<uint32_t>(10'000 + random_.below(500'000)), now_);
  }
}

void Simulation::request() {
  const State& state = rollout_.state();
  const Spec& spec = rollout_.spec();
  const uint64_t user = fault_.users > 0 ? random_.below(fault_.users) : 0;
  const std::string key = spec.sticky.on() ? std::to_string(user) : "";
  const Draw draw = draw_request(spec, state.weight_ppm, {.key = key}, random_.next());
  const Arm arm = draw.arm();
  canary_requests_ += arm == Arm::kCanary;
  if (draw.place == Place::kStable && state.shadow_ppm > 0 && random_.below(kAll) < state.shadow_ppm) shadow();
  if (!draw.evidence) return;

  Observation observation = answer(arm, draw.weight_ppm);
  if (fault_.users > 0) observation.outcome = user_fails(user, arm) ? fault_.outcome : Outcome::kOk;
  if (!fault_.forget_keys) observation.key = draw.key;
  if (draw.place == Place::kBaseline)
    observation.latency = std::chrono::nanoseconds(std::llround(static_cast<double>(observation.latency.count()) * fault_.baseline_slower));
  if (fault_.first_label[0] > 0 && draw.look && observation.outcome == Outcome::kOk) observation.output = output(arm, draw.look_weight_ppm);
  if (takes_time()) return begin(std::move(observation));
  rollout_.observe(observation, now_);
}

// ---- requests that take their time ----

Time Simulation::after(std::chrono::milliseconds mean) {
  if (mean.count() == 0) return Time::max();
  const double drawn = -std::log(1 - random_.uniform()) * static_cast<double>(mean.count());
  return now_ + std::chrono::microseconds(static_cast<int64_t>(drawn * 1e3));
}

void Simulation::begin(Observation observation) {
  Endpoint& endpoint = endpoints_[static_cast<size_t>(observation.arm)];
  if (now_ < endpoint.back) {
    observation.outcome = Outcome::kError;
    observation.ending = Ending::kRefused;
    observation.batch.reset();
    rollout_.observe(observation, now_);
    return;
  }
  const auto drawn = latencies()[random_.next() & (latencies().size() - 1)];
  observation.latency = std::chrono::nanoseconds(std::llround(static_cast<double>(drawn.count()) * fault_.service_time));
  if (observation.outcome == Outcome::kError && fault_.cut_off) {
    observation.ending = Ending::kBroken;
    observation.batch.reset();
  }
  endpoint.requests.push({now_, now_ + observation.latency, observation});
}

/// What ends, and what is killed or reset, until then, in its order.
void Simulation::let_end(Time until) {
  for (;;) {
    Time next = next_reset_;
    for (const Endpoint& endpoint : endpoints_) {
      next = std::min({next, endpoint.dies, endpoint.tells});
      if (!endpoint.requests.empty()) next = std::min(next, endpoint.requests.top().ends);
    }
    if (next > until || is_over(rollout_.state().phase)) return;
    for (Arm arm : {Arm::kStable, Arm::kCanary}) {
      Endpoint& endpoint = endpoints_[static_cast<size_t>(arm)];
      if (next == endpoint.dies) {
        break_all(arm, next);
        endpoint.back = next + fault_.dead_for;
        endpoint.dies = std::max(endpoint.back, after(fault_.killed_every));
      } else if (next == next_reset_) {
        break_all(arm, next);
      } else if (next == endpoint.tells) {
        tell(arm, next);
      } else if (!endpoint.requests.empty() && endpoint.requests.top().ends == next) {
        finish(arm, endpoint.requests.top().observation, next);
        endpoint.requests.pop();
      }
    }
    if (next == next_reset_) next_reset_ = after(fault_.reset_every);
  }
}

void Simulation::break_all(Arm arm, Time when) {
  auto& requests = endpoints_[static_cast<size_t>(arm)].requests;
  for (; !requests.empty(); requests.pop()) {
    Observation observation = requests.top().observation;
    observation.outcome = Outcome::kError;
    observation.ending = Ending::kBroken;
    observation.latency = when - requests.top().began;
    observation.batch.reset();
    finish(arm, observation, when);
  }
}

/// The router asks the endpoint of a broken answer at once, and has an answer a millisecond later.
void Simulation::finish(Arm arm, const Observation& observation, Time when) {
  rollout_.observe(observation, when);
  Time& tells = endpoints_[static_cast<size_t>(arm)].tells;
  if (observation.ending == Ending::kBroken && fault_.asks_for_life) tells = std::min(tells, when + std::chrono::milliseconds(1));
}

void Simulation::tell(Arm arm, Time when) {
  Endpoint& endpoint = endpoints_[static_cast<size_t>(arm)];
  endpoint.tells = Time::max();
  rollout_.observe({.arm = arm,
                    .epoch = rollout_.state().epoch,
                    .outcome = Outcome::kNeutral,
                    .latency = std::chrono::microseconds(900),
                    .endpoint = arm == Arm::kCanary ? 1u : 0u,
                    .ending = when < endpoint.back ? Ending::kRefused : Ending::kAnswered,
                    .drawn = false,
                    .sign = true},
                   when);
}

bool Simulation::user_fails(uint64_t user, Arm arm) const {
  const uint64_t drawn = mix(seed_ ^ mix(user) ^ requests_ / fault_.session << 32);
  return static_cast<double>(drawn >> 11) * 0x1p-53 < rate(arm);
}

Output Simulation::output(Arm arm, uint32_t weight_ppm) {
  const double first = fault_.first_label[static_cast<size_t>(arm)];
  const auto label = random_.chance(first) ? 0 : 1 + static_cast<uint32_t>(random_.below(9));
  return {.weight_ppm = weight_ppm, .form = 1, .label = label, .score = random_.uniform() + fault_.score_shift[static_cast<size_t>(arm)]};
}

/// The machine stands still while requests come; then each arm answers its own in as few batches as it can.
void Simulation::stall() {
  const uint32_t weight = rollout_.state().weight_ppm;
  const uint64_t length = fault_.stall_longest / 5 + random_.below(fault_.stall_longest - fault_.stall_longest / 5 + 1);
  std::array<std::vector<uint64_t>, 2> arrivals;
  for (uint64_t arrival = 0; arrival < length; ++arrival) arrivals[random_.below(kAll) < weight ? 1 : 0].push_back(arrival);
  canary_requests_ += arrivals[1].size();
  now_ += length * kBetweenRequests;
  const auto order = fault_.canary_resumes_first ? std::array{Arm::kCanary, Arm::kStable} : std::array{Arm::kStable, Arm::kCanary};
  for (Arm arm : order) resume(arm, arrivals[static_cast<size_t>(arm)], length, weight);
}

void Simulation::resume(Arm arm, const std::vector<uint64_t>& arrivals, uint64_t end, uint32_t weight_ppm) {
  for (size_t k = 0; k < arrivals.size(); ++k) {
    const size_t place = k % kLargestBatchAfterStall, first = k - place;
    if (place == 0) ++batches_;
    const auto n = static_cast<uint32_t>(std::min(kLargestBatchAfterStall, arrivals.size() - first));
    rollout_.observe({.arm = arm,
                      .epoch = rollout_.state().epoch,
                      .weight_ppm = weight_ppm,
                      .outcome = random_.chance(fault_.stalled) ? fault_.outcome : Outcome::kOk,
                      .latency = (end - arrivals[k]) * kBetweenRequests + latency(arm),
                      .batch = BatchId{batches_, static_cast<uint32_t>(place), n},
                      .endpoint = arm == Arm::kCanary ? 1u : 0u},
                     now_);
  }
}

void Simulation::shadow() {
  ++mirrored_;
  const bool stable_bad = random_.chance(rate(Arm::kStable)), canary_bad = random_.chance(rate(Arm::kCanary));
  ShadowPair pair{.epoch = rollout_.state().epoch,
                  .stable = stable_bad ? fault_.outcome : Outcome::kOk,
                  .canary = canary_bad ? fault_.outcome : Outcome::kOk,
                  .comparable = !stable_bad && !canary_bad};
  pair.mismatch = pair.far = random_.chance(fault_.disagreement);
  if (random_.chance(fault_.telling)) pair.same = !pair.far && random_.chance(fault_.same);
  rollout_.observe(pair, now_);
}

double Simulation::rate(Arm arm) const {
  if (fault_.outage_every > 0 && requests_ % fault_.outage_every < fault_.outage_length) return fault_.outage;
  return arm == Arm::kCanary ? fault_.canary : fault_.stable;
}

void Simulation::form_batch(Arm arm) {
  const uint32_t largest = fault_.largest_batch[static_cast<size_t>(arm)];
  const uint32_t n = fault_.fixed_batch ? largest : 1 + static_cast<uint32_t>(random_.below(largest));
  forming_[static_cast<size_t>(arm)] = {++batches_, n, 0, fault_.whole_batch && random_.chance(rate(arm))};
}

Observation Simulation::answer(Arm arm, uint32_t weight_ppm) {
  Batch& batch = forming_[static_cast<size_t>(arm)];
  if (batch.next == batch.n) form_batch(arm);
  const bool bad = fault_.whole_batch ? batch.bad : random_.chance(rate(arm));
  const bool alone = bad && fault_.before_batching;
  return {.arm = arm,
          .epoch = rollout_.state().epoch,
          .weight_ppm = weight_ppm,
          .outcome = bad ? fault_.outcome : Outcome::kOk,
          .latency = latency(arm),
          .batch = alone ? BatchId{++batches_, 0, 1} : BatchId{batch.id, batch.next++, batch.n},
          .endpoint = arm == Arm::kCanary ? 1u : 0u};
}

std::chrono::nanoseconds Simulation::latency(Arm arm) {
  if (!fault_.judged_on_latency) return std::chrono::milliseconds(1);
  auto drawn = latencies()[random_.next() & (latencies().size() - 1)];
  if (fault_.wave > 0) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(requests_ % kWaveLength) / kWaveLength;
    drawn = std::chrono::nanoseconds(std::llround(static_cast<double>(drawn.count()) * std::exp(fault_.wave * std::sin(phase))));
  }
  if (arm == Arm::kStable) return drawn;
  const double tail = fault_.canary_extra_tail > 0 && random_.chance(fault_.canary_extra_tail) ? fault_.tail_factor : 1;
  const double cold = canary_requests_ + mirrored_ <= fault_.cold_answers ? 10 : 1;
  return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(drawn.count()) * fault_.canary_slower * tail * cold));
}

Spec spec_of(const std::string& lines) {
  const std::string canary = lines.find("canary:") == std::string::npos ? "canary: {version: 2}\n" : "";
  const std::string text = "service: s\nstable: {version: 1}\n" + canary + lines;
  return parse_spec(config::Node::parse(text, "spec").value()).value();
}

Spec hold_at(double percent, const std::string& guard) {
  return spec_of(fmt::format("steps: [{{setWeight: {}, until: {{duration: 100000h}}}}]\n", percent) + guard);
}

}  // namespace serin::rollout
