// Every order of what can happen, to a bounded depth: crashes at each moment, late evidence, commands, a store that fails. Two paths that lead to the
// same state go on as one. The rules are those of world.cc; the one this is for: no weight rises after a trip.
//
// So that few steps go far, evidence is cheap here: alpha is a half, one good answer certifies.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_set>

#include "runtime/base/log.h"
#include "tests/router/simulation/world.h"

namespace serin::router {
namespace {

constexpr const char* kSpec =
    "steps: [10, {pause: {}}, 50, {promote: {bake: 10m, control: 10}}]\n"
    "guard: {falseRollback: 0.5, latency: {baseline: 100, skip: 0}}\n"
    "certify: {margin: 90%, confidence: 50%, maxStepDuration: 30m}\n";

struct Action {
  const char* name;
  std::function<void(World&)> run;
};

const std::vector<Action>& actions() {
  using std::chrono::minutes;
  using std::chrono::seconds;
  static const std::vector<Action> all = {
      {"good answers", [](World& world) { world.traffic(150, 0, 0); }},
      {"the canary fails", [](World& world) { world.traffic(150, 0, 1); }},
      {"both fail", [](World& world) { world.traffic(30, 1, 1); }},
      {"the canary is silent", [](World& world) { world.traffic(150, 0, 0, /*canary_silent=*/true); }},
      {"requests begin", [](World& world) { world.begin_requests(100, /*bad=*/true); }},
      {"they end badly", [](World& world) { world.resolve(); }},
      {"a tick", [](World& world) { world.tick(std::chrono::milliseconds(100)); }},
      {"half a minute", [](World& world) { world.tick(seconds(30)); }},
      {"an hour", [](World& world) { world.tick(minutes(61)); }},
      {"save", [](World& world) { world.save(); }},
      {"the store fails", [](World& world) { world.store.failing = true; }},
      {"the store is well", [](World& world) { world.store.failing = false; }},
      {"crash", [](World& world) { world.crash(); }},
      {"crash before writing",
       [](World& world) {
         world.store.dies = MemoryStore::Dies::kBeforeWriting;
         world.save();
         world.store.dies = MemoryStore::Dies::kNo;
       }},
      {"crash after writing",
       [](World& world) {
         world.store.dies = MemoryStore::Dies::kAfterWriting;
         world.save();
         world.store.dies = MemoryStore::Dies::kNo;
       }},
      {"start", [](World& world) { world.start(); }},
      {"pause", [](World& world) { world.command("pause"); }},
      {"resume", [](World& world) { world.command("resume"); }},
      {"promote", [](World& world) { world.command("promote"); }},
      {"abort", [](World& world) { world.command("abort"); }},
      {"undo", [](World& world) { world.command("undo"); }},
      {"weight 0", [](World& world) { world.command("set-weight", 0); }},
      {"weight 30 %", [](World& world) { world.command("set-weight", 300'000); }},
  };
  return all;
}

using Path = std::vector<uint8_t>;

std::string words(const Path& path) {
  std::string text;
  for (const uint8_t action : path) text += fmt::format("{}{}", text.empty() ? "" : ", ", actions()[action].name);
  return text;
}

TEST(Exhaustive, NoWeightRisesAfterATripWhateverTheOrder) {
  log::configure({.level = log::Level::kOff});
  const size_t depth = std::getenv("SERIN_LONG") != nullptr ? 6 : 4;  // beyond a rollout that was started and written
  const Folder folder;
  std::unordered_set<size_t> seen;
  std::vector<Path> frontier = {{}};
  uint64_t tried = 0, trips = 0;
  for (size_t level = 0; level < depth; ++level) {
    std::vector<Path> next;
    for (const Path& path : frontier)
      for (size_t action = 0; action < actions().size(); ++action) {
        World world(kSpec, folder.page, 7);
        world.traffic(120, 0, 0);
        world.start();
        world.save();
        world.check();
        Path longer = path;
        longer.push_back(static_cast<uint8_t>(action));
        for (const uint8_t step : longer) {
          actions()[step].run(world);
          world.check();
          ASSERT_EQ(world.broken, "") << words(longer);
        }
        ++tried;
        const auto status = world.status();
        trips += status.rollout && status.rollout->state.phase == rollout::Phase::kRolledBack && status.rollout->state.cause != "abort";
        if (seen.insert(std::hash<std::string>()(world.fingerprint())).second) next.push_back(std::move(longer));
      }
    std::printf("  %zu steps: %zu states\n", level + 1, next.size());
    frontier = std::move(next);
  }
  std::printf("  %llu orders tried, %llu ended in a trip\n", static_cast<unsigned long long>(tried),
              static_cast<unsigned long long>(trips));
  EXPECT_GT(trips, 100u);
}

}  // namespace
}  // namespace serin::router
