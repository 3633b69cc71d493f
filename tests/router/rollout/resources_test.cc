// Programs that use memory, descriptors and CPU time as programs do: the healthy ones stay, and those that leak or burn are named.
// SERIN_LONG=1 for 10,000 healthy rollouts of each kind.

#include "router/rollout/resource_guards.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "router/rollout/replay.h"
#include "router/rollout/verdict_record.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double kMiB = 1 << 20, kRound = 5;  // seconds

uint64_t healthy_runs() { return std::getenv("SERIN_LONG") != nullptr ? 10'000 : 200; }

double normal(Random& random) { return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * M_PI * random.uniform()); }

/// One process. Shares are of its base.
struct Program {
  double base = 500 * kMiB;
  double plateau = 0, tau = 60;                  ///< warms up: grows towards base + plateau
  double logarithm = 0;                          ///< a cache that fills: logarithm * ln(1 + answers / 1000)
  double linear_to = 0, linear_answers = 1;      ///< another one, of inputs that never repeat: linear until full
  double tooth = 0, tooth_seconds = 0;           ///< a garbage collector that runs so often,
  double tooth_answers = 0;                      ///< or after so many answers
  double noise = 0.001, sluggish = 0;            ///< of each measurement; how much of it stays for the next one
  double walk = 0;                               ///< step of a random walk, each round
  double of_load = 0;                            ///< for each 100 requests/s
  double leak_a_minute = 0, leak_an_answer = 0;  ///< from `healthy_seconds` on
  double healthy_seconds = 0;
  double restart_every = 0;  ///< seconds
  double descriptors = 40, descriptors_a_second = 0;
  double cpu_an_answer = 0.002, idle_cpu = 0.01, cpu_noise = 0.1;
  double burns_at_start = 0;  ///< CPU for so many seconds
};

struct World {
  Program stable{}, canary{};
  double rate = 200;  ///< requests a second
  double weight = 5;
  bool idle_known = true;
  double load_ramp = 0;      ///< the rate doubles within so many seconds, from the tenth minute on
  bool steps = false;        ///< 1, 5, 20, 50 %, two minutes each
  double stable_runs = 1e5;  ///< seconds that stable has run before: it is warm
  double gpu_of_memory = 0;  ///< that part of the memory is exported as memory of a GPU instead
};

class Process {
 public:
  Process(const Program& program, Arm arm, double ran_before, double rate, uint64_t seed)
      : program_(program), arm_(arm), seconds_(ran_before), answers_(ran_before * rate), random_(seed), phase_(random_.uniform()) {
    requests_ = answers_;
  }

  ResourceSample sample(double rate, double now) {
    Program& p = program_;
    if (p.restart_every > 0 && seconds_ >= p.restart_every) {
      seconds_ = answers_ = cpu_ = lost_ = 0;
      started_ = now;
    }
    seconds_ += kRound;
    answers_ += rate * kRound;
    requests_ += rate * kRound;
    cpu_ += std::max(0.0, rate * kRound * p.cpu_an_answer * (1 + p.cpu_noise * normal(random_))) + p.idle_cpu * kRound;
    if (seconds_ <= p.burns_at_start) cpu_ += kRound * 0.9;
    noise_ = p.sluggish * noise_ + std::sqrt(1 - p.sluggish * p.sluggish) * p.noise * normal(random_);
    walked_ += p.walk * normal(random_);
    if (now >= p.healthy_seconds) lost_ += p.leak_a_minute * kRound / 60 + p.leak_an_answer * rate * kRound;
    double share = 1 + noise_ + walked_ + lost_ + p.of_load * rate / 100;
    share += p.plateau * (1 - std::exp(-seconds_ / p.tau)) + p.logarithm * std::log1p(answers_ / 1000);
    share += p.linear_to * std::min(1.0, answers_ / p.linear_answers);
    if (p.tooth_seconds > 0) share += p.tooth * std::fmod(phase_ + seconds_ / p.tooth_seconds, 1);
    if (p.tooth_answers > 0) share += p.tooth * std::fmod(phase_ + answers_ / p.tooth_answers, 1);
    const double descriptors = p.descriptors + std::floor(2 * random_.uniform()) + p.descriptors_a_second * seconds_;
    return {.arm = arm_,
            .endpoint = static_cast<uint32_t>(arm_),
            .memory = p.base * share,
            .descriptors = descriptors,
            .most_descriptors = 65'536,
            .cpu_seconds = std::floor(cpu_ * 100) / 100,
            .started = started_,
            .requests = requests_,
            .idle_cpu = p.idle_cpu};
  }

 private:
  Program program_;
  Arm arm_;
  double seconds_, answers_, requests_ = 0, cpu_ = 0, started_ = 1, noise_ = 0, walked_ = 0, lost_ = 0;
  Random random_;
  double phase_;
};

/// One rollout; `seconds` until it was rolled back.
struct Trial {
  Trial(const World& world, uint64_t seed, double most_seconds, const std::string& guard = "")
      : rollout(Rollout::start(hold_at(world.weight, guard), "s-1", 1, simulated_baseline(), Time())) {
    double weight = world.steps ? 1 : world.weight;
    Process stable(world.stable, Arm::kStable, world.stable_runs, world.rate * (1 - weight / 100), 2 * seed + 1);
    Process canary(world.canary, Arm::kCanary, 0, 0, 2 * seed + 2);
    for (seconds = kRound; seconds <= most_seconds; seconds += kRound) {
      const Time now = Time(std::chrono::milliseconds(std::llround(1000 * seconds)));
      if (world.steps) {
        constexpr double kWeights[] = {1, 5, 20, 50};
        const double wanted = kWeights[std::min<size_t>(3, static_cast<size_t>(seconds / 120))];
        if (wanted != weight) {
          EXPECT_TRUE(rollout.set_weight(static_cast<uint32_t>(10'000 * wanted), now));
        }
        weight = wanted;
      }
      const double ramp = world.load_ramp > 0 ? 1 + std::clamp((seconds - 600) / world.load_ramp, 0.0, 1.0) : 1;
      const double rate = world.rate * ramp;
      ResourceRound round{.epoch = rollout.state().epoch, .asked_stable = 1, .asked_canary = 1};
      round.samples = {stable.sample(rate * (1 - weight / 100), seconds), canary.sample(rate * weight / 100, seconds)};
      for (ResourceSample& sample : round.samples) {
        if (!world.idle_known) sample.idle_cpu.reset();
        if (world.gpu_of_memory == 0) continue;
        sample.gpu = *sample.memory * world.gpu_of_memory;
        sample.memory.reset();
      }
      if (rollout.observe(round, now)) break;
    }
    rolled_back = rollout.state().phase == Phase::kRolledBack;
  }
  Rollout rollout;
  double seconds = 0;
  bool rolled_back = false;
};

struct Healthy {
  const char* name;
  World world;
  bool random_tau = false;
};

class HealthyResources : public testing::TestWithParam<Healthy> {};

TEST_P(HealthyResources, AreLeftAlone) {
  const Healthy& row = GetParam();
  uint64_t back = 0;
  Random random(77);
  for (uint64_t seed = 0; seed < healthy_runs(); ++seed) {
    World world = row.world;
    if (row.random_tau) world.canary.tau = 30 * std::pow(60, random.uniform());  // 30 s to 30 minutes
    const Trial run(world, seed, 3600);
    back += run.rolled_back;
    if (run.rolled_back && back <= 3) std::printf("    %.0f s: %s\n", run.seconds, run.rollout.state().reason.c_str());
  }
  std::printf("  healthy, %-58s %llu of %llu rolled back\n", row.name, static_cast<unsigned long long>(back),
              static_cast<unsigned long long>(healthy_runs()));
  EXPECT_LE(back, healthy_runs() * 15 / 10'000) << "README: at most 0.15 %";
}

INSTANTIATE_TEST_SUITE_P(
    Table, HealthyResources,
    testing::Values(Healthy{"noise that lasts", {.canary = {.noise = 0.02, .sluggish = 0.99}}},
                    Healthy{"warm-up to 25 % more, in 30 s to 30 minutes", {.canary = {.plateau = 0.25}}, true},
                    Healthy{"warm-up to twice as much, which stable has", {.stable = {.plateau = 1}, .canary = {.plateau = 1}}, true},
                    Healthy{"a cache that fills like a logarithm", {.canary = {.logarithm = 0.1}}},
                    Healthy{"a cache that fills to stable's level in half an hour",
                            {.stable = {.linear_to = 1, .linear_answers = 18'000}, .canary = {.linear_to = 1, .linear_answers = 18'000}}},
                    Healthy{"saw teeth of 30 % every 20,000 answers, on both",
                            {.stable = {.tooth = 0.3, .tooth_answers = 20'000}, .canary = {.tooth = 0.3, .tooth_answers = 20'000}}},
                    Healthy{"saw teeth of 30 % every five minutes, on both",
                            {.stable = {.tooth = 0.3, .tooth_seconds = 300}, .canary = {.tooth = 0.3, .tooth_seconds = 300}}},
                    Healthy{"saw teeth of 7 % every ten minutes, on the canary", {.canary = {.tooth = 0.07, .tooth_seconds = 600}}},
                    Healthy{"load that doubles within five minutes",
                            {.stable = {.of_load = 0.1}, .canary = {.base = 600 * kMiB, .of_load = 0.1}, .load_ramp = 300}},
                    Healthy{"load that doubles within half an hour, at 50 %",
                            {.stable = {.of_load = 0.1}, .canary = {.base = 600 * kMiB, .of_load = 0.1}, .weight = 50, .load_ramp = 1800}},
                    Healthy{"a larger model whose weight rises",
                            {.stable = {.of_load = 0.1}, .canary = {.base = 650 * kMiB, .of_load = 0.13}, .steps = true}},
                    Healthy{"restarts every ten minutes",
                            {.canary = {.base = 600 * kMiB, .plateau = 0.2, .tau = 60, .restart_every = 600}}},
                    Healthy{"a heap that walks", {.canary = {.base = 600 * kMiB, .noise = 0, .walk = 0.002}}},
                    Healthy{"a leak that both have, per answer", {.stable = {.leak_an_answer = 1e-5}, .canary = {.leak_an_answer = 1e-5}}},
                    Healthy{"CPU of smaller batches: 1.3 times, in noise", {.canary = {.cpu_an_answer = 0.0026, .cpu_noise = 0.4}}},
                    Healthy{"CPU without requests", {.canary = {.cpu_an_answer = 0.0025, .idle_cpu = 0.1}}},
                    Healthy{"CPU without requests, never measured", {.canary = {.idle_cpu = 0.1}, .idle_known = false}},
                    Healthy{"CPU of a start", {.canary = {.burns_at_start = 60}}}));

struct IllCanary {
  const char* name;
  World world;
  const char* cause;
  double most_median;  ///< seconds
};

class IllResources : public testing::TestWithParam<IllCanary> {};

TEST_P(IllResources, AreFoundBeforeTheyDie) {
  const IllCanary& row = GetParam();
  std::vector<double> delays;
  std::string reason;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Trial run(row.world, seed, row.world.canary.healthy_seconds + 7200);
    ASSERT_TRUE(run.rolled_back) << seed;
    ASSERT_EQ(run.rollout.state().cause, row.cause) << run.rollout.state().reason;
    delays.push_back(run.seconds - row.world.canary.healthy_seconds);
    reason = run.rollout.state().reason;
  }
  std::ranges::sort(delays);
  std::printf("  %-58s median %4.0f s, p99 %4.0f s\n    %s\n", row.name, delays[100], delays[198], reason.c_str());
  EXPECT_LE(delays[100], row.most_median);
}

INSTANTIATE_TEST_SUITE_P(
    Table, IllResources,
    testing::Values(IllCanary{"memory, 1 % a minute", {.canary = {.leak_a_minute = 0.01}}, "res_memory", 700},
                    IllCanary{"memory, 1 % a minute, measurements that vary by 0.5 %",
                              {.canary = {.noise = 0.005, .leak_a_minute = 0.01}},
                              "res_memory",
                              2400},
                    IllCanary{"memory, 10 % a minute", {.canary = {.leak_a_minute = 0.1}}, "res_memory", 150},
                    IllCanary{"memory, 5 % a minute, after half an hour",
                              {.canary = {.leak_a_minute = 0.05, .healthy_seconds = 1800}},
                              "res_memory",
                              2700},
                    IllCanary{"memory, 0.05 % an answer (30 % a minute)", {.canary = {.leak_an_answer = 5e-4}}, "res_memory", 150},
                    IllCanary{"memory, 2 % a minute after a warm-up of 20 %",
                              {.canary = {.plateau = 0.2, .tau = 60, .leak_a_minute = 0.02}},
                              "res_memory",
                              1500},
                    IllCanary{"descriptors, one a second", {.canary = {.descriptors_a_second = 1}}, "res_descriptors", 150},
                    IllCanary{"memory of a GPU, 2 % a minute", {.canary = {.leak_a_minute = 0.02}, .gpu_of_memory = 4}, "res_gpu", 500},
                    IllCanary{"CPU, twice as much for an answer", {.canary = {.cpu_an_answer = 0.004}}, "res_cpu", 200},
                    IllCanary{"CPU, twice as much, at half of the traffic",
                              {.canary = {.cpu_an_answer = 0.004}, .weight = 50, .idle_known = false},
                              "res_cpu",
                              200}));

TEST(Resources, TheVerdictHasNumbersAndReplays) {
  const Trial run({.canary = {.leak_a_minute = 0.1}}, 1, 3600);
  EXPECT_THAT(
      run.rollout.state().reason,
      testing::ContainsRegex("res_memory: memory of the canary grows by [0-9.]+ MiB a minute \\(at least [0-9.]+ MiB\\), from .* in "
                             "[0-9]+ seconds; [0-9]+ minutes until it has doubled. Stable does not grow; e-value"));
  const VerdictRecord record = run.rollout.explain();
  EXPECT_EQ(record.guard, "res_memory");
  const Replay again = replay(record);
  EXPECT_TRUE(again.rolled_back);
  for (size_t i = 0; i < record.events.size(); ++i) EXPECT_EQ(again.bits[i], record.events[i].bits) << i;
}

TEST(Resources, ADeclaredLimitCountsInsteadOfDoubling) {
  const Trial run({.canary = {.leak_a_minute = 0.1}}, 1, 3600, "guard: {resources: {memoryLimit: 1000000000}}");
  EXPECT_THAT(run.rollout.state().reason, HasSubstr("until its limit of 954 MiB"));
  const Trial far({.canary = {.leak_a_minute = 0.01}}, 1, 3600, "guard: {resources: {memoryLimit: 1e15}}");
  EXPECT_FALSE(far.rolled_back) << "it would take years";
}

TEST(Resources, AStepWaitsForGrowthThatMayLast) {
  const Trial run({.canary = {.leak_a_minute = 0.02}}, 1, 300);
  EXPECT_FALSE(run.rolled_back);
  const Report report = run.rollout.report();
  EXPECT_THAT(report.note, StartsWith("held: memory of the canary grows by"))
      << std::ranges::find(report.evidence, "res_memory", &Evidence::guard)->bits << " bits, at least "
      << report.resources[0].growth_least.value_or(-1);
}

TEST(Resources, OffAndRehearsed) {
  EXPECT_FALSE(Trial({.canary = {.leak_a_minute = 0.1}}, 1, 900, "guard: {resources: \"off\"}").rolled_back);
  EXPECT_TRUE(Trial({.canary = {.leak_a_minute = 0.1}}, 1, 900, "guard: {resources: \"off\"}").rollout.report().resources.empty());
  const Trial dry({.canary = {.leak_a_minute = 0.1}}, 1, 900, "dryRun: [resources]");
  EXPECT_FALSE(dry.rolled_back);
  ASSERT_EQ(dry.rollout.report().dry_run.size(), 1);
  EXPECT_EQ(dry.rollout.report().dry_run[0].guard, "res_memory");
}

TEST(Resources, WhatIsNotExportedIsNotJudgedAndSaysSo) {
  const Trial run({}, 1, 300);
  const Report report = run.rollout.report();
  ASSERT_EQ(report.resources.size(), 4);
  EXPECT_EQ(report.resources[2].guard, "res_gpu");
  EXPECT_EQ(report.resources[2].note, "not judged: both versions do not export GPU memory");
  EXPECT_EQ(report.resources[0].note, "");
  const Trial first({}, 1, 5);
  EXPECT_EQ(first.rollout.report().resources[3].note, "") << "there is only nothing to compare with yet";
  EXPECT_NEAR(*report.resources[0].canary, 500 * kMiB, 5 * kMiB);
}

TEST(Resources, TwoArmsInOneProcessAreNotToldApart) {
  ResourceGuards guards((Guard()));
  ResourceRound round{.samples = {{.memory = 1}, {.arm = Arm::kCanary, .memory = 1}}, .asked_stable = 1, .asked_canary = 1};
  round.one_process = true;
  EXPECT_TRUE(guards.observe(round, 50'000, {}).empty());
  for (const ResourceLine& line : guards.lines()) EXPECT_THAT(line.note, HasSubstr("in one process"));
}

}  // namespace
}  // namespace serin::rollout
