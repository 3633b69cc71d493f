#include "router/rollout/rehearsal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "router/rollout/draw.h"

namespace serin::rollout {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr double kCpuOfAnAnswer = 0.002, kIdleCpu = 0.005;  // seconds; and each second

/// What was seen of stable before the rollout.
Baseline baseline_of(const Recording& recording) {
  Baseline baseline;
  if (!recording.known_before) return baseline;
  for (const Recorded& request : recording.requests)
    if (request.outcome == Outcome::kOk) baseline.record(request.latency);
  return baseline;
}

class Stage {
 public:
  Stage(const Spec& spec, const Recording& recording, const Ailment& ailment, uint64_t seed)
      : recording_(recording),
        ailment_(ailment),
        random_(seed),
        rollout_(Rollout::start(spec, "rehearsal-1", 1, baseline_of(recording), now_)) {}

  Rehearsal run(uint64_t most) {
    // Another part of the recording comes first in each rehearsal.
    size_t next = random_() % recording_.requests.size();
    std::chrono::nanoseconds offset = -recording_.requests[next].at;
    while (result_.requests < most && goes_on()) {
      const Recorded& request = recording_.requests[next];
      pass_time_until(Time{} + offset + request.at);
      if (!goes_on()) break;
      ask(request);
      if (++next < recording_.requests.size()) continue;
      next = 0;
      offset += recording_.length;
    }
    result_.phase = rollout_.state().phase;
    result_.cause = rollout_.state().cause;
    result_.seconds = std::chrono::duration<double>(now_ - Time{}).count();
    return result_;
  }

 private:
  bool goes_on() const { return !is_over(rollout_.state().phase) && rollout_.state().phase != Phase::kInconclusive; }

  void pass_time_until(Time then) {
    for (; next_tick_ <= then && goes_on(); next_tick_ += kTick) {
      now_ = next_tick_;
      rollout_.tick(now_);
      if (now_ >= next_reading_) read_resources();
      if (rollout_.state().phase == Phase::kPaused) (void)rollout_.resume(now_);
    }
    if (goes_on()) now_ = std::max(now_, then);
  }

  /// One process for each arm. The judge asks for pages of metrics at this pace.
  void read_resources() {
    constexpr double kMemory = 512 << 20, kNoise = 0.001, kCpuNoise = 0.1;
    const auto interval = rollout_.spec().guard.resources.interval;
    const double seconds = std::chrono::duration<double>(interval).count(), age = std::chrono::duration<double>(now_ - Time{}).count();
    next_reading_ = now_ + interval;
    ResourceRound round{.epoch = rollout_.state().epoch, .asked_stable = 1, .asked_canary = 1};
    for (const Arm arm : {Arm::kStable, Arm::kCanary}) {
      Process& process = processes_[static_cast<size_t>(arm)];
      const bool ill = arm == Arm::kCanary;
      const double answers = process.requests - std::exchange(process.before, process.requests);
      process.cpu_seconds +=
          kCpuOfAnAnswer * answers * (ill ? ailment_.cpu : 1) * std::max(0.0, 1 + kCpuNoise * normal_(random_)) + kIdleCpu * seconds;
      round.samples.push_back({.arm = arm,
                               .endpoint = ill ? 1U : 0U,
                               .memory = kMemory * (1 + kNoise * normal_(random_) + (ill ? ailment_.leak * age / 60 : 0)),
                               .cpu_seconds = process.cpu_seconds,
                               .requests = process.requests,
                               .idle_cpu = kIdleCpu});
    }
    rollout_.observe(round, now_);
  }

  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  Observation answer(const Recorded& request, Arm arm) {
    ++processes_[static_cast<size_t>(arm)].requests;
    Observation observation{.arm = arm,
                            .epoch = rollout_.state().epoch,
                            .outcome = request.outcome,
                            .latency = request.latency,
                            .batch = BatchId{++batches_, 0, 1},
                            .endpoint = arm == Arm::kCanary ? 1U : 0U};
    if (arm == Arm::kStable) return observation;
    if (uniform() < ailment_.errors) observation.outcome = Outcome::kError;
    constexpr double kTailFactor = 9;
    const double slower = ailment_.slower * (ailment_.tail > 0 && uniform() < ailment_.tail ? kTailFactor : 1);
    observation.latency = std::chrono::nanoseconds(std::llround(static_cast<double>(request.latency.count()) * slower));
    const auto deadline = rollout_.spec().guard.deadline;
    if (deadline && observation.outcome == Outcome::kOk && observation.latency > *deadline) observation.outcome = Outcome::kDeadline;
    return observation;
  }

  void ask(const Recorded& request) {
    ++result_.requests;
    const State& state = rollout_.state();
    const std::string key = rollout_.spec().sticky.on() ? std::to_string(random_()) : "";
    const Draw draw = draw_request(rollout_.spec(), state.weight_ppm, {.key = key}, random_());
    const bool mirrors = state.weight_ppm == 0 && state.shadow_ppm > 0;  // a recording has no bodies: later pairs say nothing
    if (draw.place == Place::kStable && mirrors && uniform() * kAll < state.shadow_ppm) mirror(request);
    Observation observation = answer(request, draw.arm());
    if (draw.place == Place::kCanary) {
      ++result_.canary_requests;
      result_.canary_failures += is_failure(observation.outcome) ? 1 : 0;
    }
    if (!draw.evidence) return;
    observation.weight_ppm = draw.weight_ppm;
    observation.key = draw.key;
    rollout_.observe(observation, now_);
  }

  void mirror(const Recorded& request) {
    const Observation canary = answer(request, Arm::kCanary);
    rollout_.observe(ShadowPair{.epoch = canary.epoch,
                                .stable = request.outcome,
                                .canary = canary.outcome,
                                .comparable = request.outcome == Outcome::kOk && canary.outcome == Outcome::kOk},
                     now_);
  }

  const Recording& recording_;
  const Ailment ailment_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  Time now_{}, next_tick_{}, next_reading_{};
  Rollout rollout_;
  uint64_t batches_ = 0;
  struct Process {
    double requests = 0, before = 0, cpu_seconds = 0;
  };
  std::array<Process, 2> processes_;  // by arm
  Rehearsal result_;
};

}  // namespace

Rehearsal rehearse(const Spec& spec, const Recording& recording, const Ailment& ailment, uint64_t seed, uint64_t most) {
  return Stage(spec, recording, ailment, seed).run(most);
}

}  // namespace serin::rollout
