// The whole life of rollouts under everything that can happen to them, drawn from a seed: traffic good and bad, answers that come late, people who
// give commands, a store that fails, crashes at every moment, time that jumps. What must hold is checked after each step (world.cc).
//
//   build/tests/simulation_test                      5,000 seeds; 100,000 with SERIN_LONG=1
//   build/tests/simulation_test --seeds 1000000      as many as one likes
//   build/tests/simulation_test --seed 4711          one again, with what happened in it

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "runtime/base/log.h"
#include "tests/router/simulation/world.h"

namespace serin::router {
namespace {

uint64_t g_first = 0, g_count = 0;  // from the command line; 0: as many as this run asks for
bool g_tell = false;

constexpr int kSteps = 120;
constexpr std::array<const char*, 7> kSpecs = {
    "steps: [1, 5, 20, 50, 100]\n",
    "",
    "steps: [5, {pause: {}}, 50, {promote: {bake: 30m, control: 5}}]\n",
    "steps: [{setWeight: 10, until: {duration: 5m}}, {pause: {duration: 1m}}, 50]\nguard: {errors: {max: 2%}}\n",
    "steps: blue-green\n",
    "steps: [20, 100]\nguard: {latency: {deadline: 1s, baseline: 100}}\ncertify: {maxStepDuration: 10m}\n",
    "steps: [50, {promote: {bake: 10m, control: 10}}]\nguard: {unit: request}\ncertify: {margin: 5%}\n",
};

/// How well the two arms are, which changes now and then.
struct Health {
  double stable = 0, canary = 0;
  bool canary_silent = false;
  bool always_well = true;  // so far, in this rollout: then a rollback by evidence is a false one
};

struct Tally {
  uint64_t rollouts = 0, promoted = 0, rolled_back = 0, healthy = 0, false_rollbacks = 0, crashes = 0;
};

void say(const World& world, const char* what) {
  if (!g_tell) return;
  const auto status = world.status();
  std::printf("  %-18s %s\n", what,
              status.rollout ? fmt::format("{} {} step {} {} ppm in force {} ppm: {}", status.rollout->state.id,
                                           phase_name(status.rollout->state.phase), status.rollout->state.step,
                                           status.rollout->state.weight_ppm, world.split().weight_ppm, status.rollout->state.reason)
                                   .c_str()
                             : "no rollout");
}

void change_health(rollout::Random& random, Health& health) {
  constexpr std::array<double, 5> kRates = {0, 0, 0.002, 0.05, 1};
  health.canary_silent = random.chance(0.05);
  health.canary = kRates[random.below(kRates.size())];
  health.stable = random.chance(0.2) ? health.canary : random.chance(0.9) ? 0.002 : 0.3;
  health.always_well = health.always_well && health.canary <= health.stable && !health.canary_silent;
}

/// One step, drawn.
const char* act(World& world, Health& health, Tally& tally) {
  rollout::Random& random = world.random;
  const double draw = random.uniform();
  if (draw < 0.40) {
    world.traffic(1 + static_cast<int>(random.below(200)), health.stable, health.canary, health.canary_silent);
    return "traffic";
  }
  if (draw < 0.55) return world.tick(std::chrono::milliseconds(100 + random.below(4000))), "tick";
  if (draw < 0.70) return world.save(), "save";
  if (draw < 0.72) return world.tick(std::chrono::minutes(random.below(90))), "long tick";
  if (draw < 0.76) {
    if (world.start()) {
      ++tally.rollouts;
      health.always_well = health.canary <= health.stable && !health.canary_silent;
    }
    return "start";
  }
  if (draw < 0.79) return change_health(random, health), "health";
  if (draw < 0.82) return world.begin_requests(10, random.chance(0.5)), "requests begin";
  if (draw < 0.85) return world.resolve(), "requests end";
  if (draw < 0.87) {
    world.store.failing = random.chance(0.5);
    return "store";
  }
  if (draw < 0.90) {
    ++tally.crashes;
    if (random.chance(0.05)) return world.lose_page(), "page lost";
    return world.crash(), "crash";
  }
  if (draw < 0.92) {
    ++tally.crashes;
    world.store.dies = random.chance(0.5) ? MemoryStore::Dies::kBeforeWriting : MemoryStore::Dies::kAfterWriting;
    world.save();
    world.store.dies = MemoryStore::Dies::kNo;
    return "crash in save";
  }
  constexpr std::array<const char*, 6> kVerbs = {"pause", "resume", "resume", "abort", "undo", "set-weight"};
  if (random.chance(0.05)) return world.command("promote"), "promote";
  const char* verb = kVerbs[random.below(kVerbs.size())];
  world.command(verb, static_cast<uint32_t>(random.below(600'000)));
  return verb;
}

/// The broken rule; empty: none.
std::string live(uint64_t seed, const std::string& page, Tally& tally) {
  rollout::Random choice(seed);
  World world(kSpecs[choice.below(kSpecs.size())], page, seed * 2 + 1);
  Health health;
  rollout::Phase before = rollout::Phase::kSucceeded;
  std::set<std::string> ended;  // a start that was not written yet is lost in a crash: then the one before it is seen to be over once more
  for (int step = 0; step < kSteps; ++step) {
    const char* what = act(world, health, tally);
    world.check();
    say(world, what);
    if (!world.broken.empty()) return fmt::format("seed {}, step {} ({}): {}", seed, step, what, world.broken);
    const auto status = world.status();
    if (!status.rollout) continue;
    const rollout::State& state = status.rollout->state;
    if (is_over(state.phase) && !is_over(before) && ended.insert(state.id).second) {
      // A limit of the user's is breached by a healthy canary, too, where stable would breach it and gets no traffic.
      const bool by_evidence = state.cause != "abort" && state.cause != "undo" && !state.cause.starts_with("threshold:");
      tally.promoted += state.phase == rollout::Phase::kSucceeded;
      tally.rolled_back += state.phase == rollout::Phase::kRolledBack;
      tally.healthy += health.always_well;
      tally.false_rollbacks += health.always_well && by_evidence && state.phase == rollout::Phase::kRolledBack;
    }
    before = state.phase;
  }
  return "";
}

TEST(Seeds, NothingBreaksARule) {
  log::configure({.level = log::Level::kOff});
  const uint64_t count = g_count > 0 ? g_count : std::getenv("SERIN_LONG") != nullptr ? 100'000 : 5'000;
  const Folder folder;
  Tally tally;
  for (uint64_t seed = g_first; seed < g_first + count; ++seed) {
    const std::string broken = live(seed, folder.page, tally);
    ASSERT_EQ(broken, "") << "again: build/tests/simulation_test --seed " << seed;
  }
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf("  %llu seeds, %llu rollouts: %llu promoted, %llu rolled back, %llu of %llu healthy ones among them; %llu crashes\n",
              number(count), number(tally.rollouts), number(tally.promoted), number(tally.rolled_back), number(tally.false_rollbacks),
              number(tally.healthy), number(tally.crashes));
  if (count < 1000) return;
  EXPECT_LE(tally.false_rollbacks, 3 + tally.healthy / 200) << "every restart has its own alpha";
  EXPECT_GT(tally.promoted, count / 100) << "or nothing was tried";
  EXPECT_GT(tally.rolled_back, count / 20);
}

}  // namespace
}  // namespace serin::router

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto number = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) {
      serin::router::g_first = number;
      serin::router::g_count = 1;
      serin::router::g_tell = true;
    } else if (std::strcmp(argv[i], "--seeds") == 0) {
      serin::router::g_count = number;
    }
  }
  return RUN_ALL_TESTS();
}
