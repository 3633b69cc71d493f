// packing_test.cc: what is placed keeps every limit, is near the optimum that the solver proves, and what is not placed says what it lacks.

#include "runtime/planner/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "runtime/planner/free_room.h"

namespace serin::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Solver& solver() {
  static const Result<Solver> opened = Solver::open(SERIN_PACKING_PLUGIN);
  if (!opened) std::fprintf(stderr, "%s\n", opened.error().message.c_str());
  return *opened;
}

Accelerator card(const std::string& name, double gigabytes) { return {.name = name, .card = name, .memory = gigabytes * 1e9}; }

FleetNode node(const std::string& name, const std::string& kind, double gigabytes, size_t count) {
  return {.name = name, .cores = 64, .memory = 512e9, .labels = {}, .accelerators = std::vector<Accelerator>(count, card(kind, gigabytes))};
}

WantedModel model(const std::string& name, const std::string& kind, double gigabytes, double busy, int replicas = 1) {
  WantedModel made{.name = name, .tenant = {}, .on = {}, .options = {}, .no_option = {}};
  made.options.push_back({.kind = kind, .replicas = replicas, .device_memory = gigabytes * 1e9, .busy = busy, .cores = 1, .memory = 1e9});
  return made;
}

/// Takes what was placed from an empty fleet, piece by piece; anything that does not fit is an error, and so is a part of a model.
void check_limits(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed) {
  FreeRoom room(fleet, wanted);
  std::map<size_t, int> replicas;
  std::map<size_t, size_t> options;
  for (const Placed& each : placed) {
    ASSERT_EQ(room.fits(each.model, each.option, each.node, each.accelerator, each.replicas), each.replicas) << wanted[each.model].name;
    room.take(each);
    replicas[each.model] += each.replicas;
    options.try_emplace(each.model, each.option);
    EXPECT_EQ(options[each.model], each.option) << "two ways for one model";
  }
  for (const auto& [which, count] : replicas) EXPECT_EQ(count, wanted[which].options[options[which]].replicas) << wanted[which].name;
}

/// 60 models on 56 cards of three kinds, of sizes that the article's fleets have: a few large, many small.
void simulate_fleet(uint64_t seed, Fleet& fleet, std::vector<WantedModel>& wanted) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
  for (int i = 0; i < 3; ++i) fleet.nodes.push_back(node("a100-" + std::to_string(i), "A100", 40, 8));
  for (int i = 0; i < 4; ++i) fleet.nodes.push_back(node("l4-" + std::to_string(i), "L4", 23.3, 4));
  for (int i = 0; i < 4; ++i) fleet.nodes.push_back(node("t4-" + std::to_string(i), "T4", 15.5, 4));
  for (int i = 0; i < 60; ++i) {
    const double gigabytes = uniform(0, 1) < 0.2 ? uniform(8, 14) : uniform(0.8, 6), busy = uniform(0.02, 0.3);
    WantedModel each = model("m" + std::to_string(i), "A100", gigabytes, busy * 0.4, 1 + static_cast<int>(random() % 5));
    each.options.push_back(
        {.kind = "L4", .replicas = each.options[0].replicas, .device_memory = gigabytes * 1e9, .busy = busy, .cores = 1, .memory = 1e9});
    each.options.push_back({.kind = "T4",
                            .replicas = each.options[0].replicas,
                            .device_memory = gigabytes * 1e9,
                            .busy = std::min(0.95, 1.7 * busy),
                            .cores = 1,
                            .memory = 1e9});
    wanted.push_back(std::move(each));
  }
}

TEST(Packing, SixtyModelsAreWithinFivePercentOfTheProvenOptimum) {
  for (const uint64_t seed : {1, 2, 3}) {
    Fleet fleet;
    std::vector<WantedModel> wanted;
    simulate_fleet(seed, fleet, wanted);
    fleet.timeout = 120;
    fleet.gap = 0.045;
    const Packing packing = pack(fleet, wanted, &solver());
    ASSERT_EQ(packing.why_no_solver, "");
    EXPECT_THAT(packing.not_placed, IsEmpty());
    check_limits(fleet, wanted, packing.placed);
    const FleetUse before = use_of(fleet, wanted, one_each(fleet, wanted)), first = use_of(fleet, wanted, first_fit(fleet, wanted)),
                   after = use_of(fleet, wanted, packing.placed);
    std::printf(
        "seed %d: %s, %.1f s, gap %.2f %%; accelerators in use %zu (%zu models) -> %zu -> %zu, their memory %.0f %% -> %.0f %% -> %.0f "
        "%%\n",
        static_cast<int>(seed), packing.solver.c_str(), packing.seconds, 100 * packing.gap(), before.in_use, before.models, first.in_use,
        after.in_use, 100 * before.memory, 100 * first.memory, 100 * after.memory);
    EXPECT_LE(packing.gap(), 0.05);
    EXPECT_GT(packing.least_cost, 0);
    EXPECT_GT(after.memory, before.memory);
  }
}

TEST(Packing, ThePlaceWithTheLeastCostIsFound) {
  Fleet fleet;  // first fit: 5 + 4, 3 + 3 + 3, 2; two are enough: 5 + 3 + 2, 4 + 3 + 3
  fleet.nodes.push_back(node("n", "L4", 10, 4));
  const std::vector<WantedModel> wanted = {model("a", "L4", 5, 0), model("b", "L4", 4, 0), model("c", "L4", 3, 0),
                                           model("d", "L4", 3, 0), model("e", "L4", 3, 0), model("f", "L4", 2, 0)};
  const Packing packing = pack(fleet, wanted, &solver());
  check_limits(fleet, wanted, packing.placed);
  EXPECT_EQ(use_of(fleet, wanted, packing.placed).in_use, 2u);
  EXPECT_NEAR(packing.cost, 20, 1e-6);
  EXPECT_NEAR(packing.least_cost, 20, 0.3);
}

TEST(Packing, AcceleratorsThatRunAlreadyAreFilledFirst) {
  Fleet fleet;
  fleet.nodes.push_back(node("idle", "L4", 24, 1));
  fleet.nodes.push_back(node("used", "L4", 24, 1));
  fleet.nodes[1].accelerators[0].busy = 0.4;
  fleet.nodes[1].accelerators[0].memory_used = 10e9;
  const std::vector<WantedModel> wanted = {model("a", "L4", 6, 0.2)};
  const Packing packing = pack(fleet, wanted, &solver());
  ASSERT_THAT(packing.placed, SizeIs(1));
  EXPECT_EQ(packing.placed[0].node, 1u);
  EXPECT_EQ(packing.cost, 0);
}

TEST(Packing, ModelsThatAreNotPlacedSayWhatTheyLack) {
  Fleet fleet;
  fleet.nodes.push_back(node("n", "L4", 24, 2));
  fleet.quotas["small"] = {.devices = 1, .cores = {}, .memory = {}, .hourly_cost = {}};
  std::vector<WantedModel> wanted = {model("large", "L4", 31, 0.1),   model("busy", "L4", 1, 1.4),     model("absent", "A100", 1, 0.1),
                                     model("many", "L4", 13, 0.1, 5), model("labelled", "L4", 1, 0.1), model("quota", "L4", 1, 0.1, 2),
                                     model("fine", "L4", 1, 0.1)};
  wanted[4].on = {{"zone", "b"}};
  wanted[5].tenant = "small";
  const Packing packing = pack(fleet, wanted, &solver());
  check_limits(fleet, wanted, packing.placed);
  std::map<std::string, std::string> why;
  for (const auto& [which, reason] : packing.not_placed) why[wanted[which].name] = reason;
  EXPECT_THAT(why, SizeIs(6));
  EXPECT_THAT(why["large"],
              HasSubstr("needs 31.0 GB of device memory, and the most that is free on L4 of node 'n' is 24.0 GB: 7.00 GB are missing"));
  EXPECT_THAT(why["large"], HasSubstr("smaller batches"));
  EXPECT_THAT(why["busy"], HasSubstr("needs 140 % of time, and the most that is free on L4 of node 'n' is 100 %: 40 % are missing"));
  EXPECT_THAT(why["absent"], HasSubstr("the fleet has no A100"));
  EXPECT_THAT(why["many"], HasSubstr("5 replicas are needed on L4, and there is room for 2 even without the other models: 3 are missing"));
  EXPECT_THAT(why["labelled"], HasSubstr("no node with its labels has L4"));
  EXPECT_THAT(why["quota"], HasSubstr("needs 2 devices, and the quota of tenant 'small' has 1 left"));
  EXPECT_EQ(packing.most_models, 1u);
}

TEST(Packing, PartsOfACoreCountAsSuchInAQuota) {
  Fleet fleet;
  fleet.nodes.push_back(node("n", "L4", 24, 1));
  fleet.quotas["t"] = {.devices = {}, .cores = 1, .memory = {}, .hourly_cost = {}};
  std::vector<WantedModel> wanted = {model("a", "L4", 1, 0.1), model("b", "L4", 1, 0.1), model("c", "L4", 1, 0.1)};
  for (WantedModel& each : wanted) {
    each.tenant = "t";
    each.options[0].cores = 0.5;
  }
  for (const Solver* const with : {&solver(), static_cast<const Solver*>(nullptr)}) {
    const Packing packing = pack(fleet, wanted, with);
    EXPECT_EQ(packing.why_no_solver, "");
    check_limits(fleet, wanted, packing.placed);
    ASSERT_THAT(packing.not_placed, SizeIs(1));
    EXPECT_THAT(packing.not_placed[0].second, HasSubstr("needs 0.5 cores, and the quota of tenant 't' has 0 cores left"));
  }
}

TEST(Packing, AsManyModelsAsPossibleArePlaced) {
  Fleet fleet;  // the large one alone, or three small ones
  fleet.nodes.push_back(node("n", "L4", 24, 1));
  const std::vector<WantedModel> wanted = {model("large", "L4", 20, 0.1), model("a", "L4", 8, 0.1), model("b", "L4", 8, 0.1),
                                           model("c", "L4", 8, 0.1)};
  const Packing packing = pack(fleet, wanted, &solver());
  ASSERT_THAT(packing.not_placed, SizeIs(1));
  EXPECT_EQ(wanted[packing.not_placed[0].first].name, "large");
  EXPECT_THAT(packing.not_placed[0].second, HasSubstr("it fits alone, but not with the others"));
  EXPECT_EQ(packing.most_models, 3u);
}

TEST(Packing, APreferenceIsFollowedUnlessItCostsMore) {
  Fleet fleet;
  fleet.nodes.push_back(node("n", "L4", 24, 1));
  fleet.nodes.push_back(node("h", "Home", 24, 1));
  WantedModel wanted = model("a", "L4", 6, 0.2);
  wanted.options[0].dislike = 0.1;
  wanted.options.push_back(wanted.options[0]);
  wanted.options[1].kind = "Home";
  wanted.options[1].dislike = 0;
  Packing packing = pack(fleet, {wanted}, &solver());
  EXPECT_EQ(fleet.nodes[packing.placed.at(0).node].name, "h");
  fleet.nodes[0].accelerators[0].busy = 0.3;  // now that one is in use anyway, and an idle one need not come into use
  packing = pack(fleet, {wanted}, &solver());
  EXPECT_EQ(fleet.nodes[packing.placed.at(0).node].name, "n");
}

TEST(Packing, WithoutASolverFirstFitAnswers) {
  Fleet fleet;
  std::vector<WantedModel> wanted;
  simulate_fleet(1, fleet, wanted);
  const Packing packing = pack(fleet, wanted, nullptr);
  EXPECT_EQ(packing.solver, "");
  EXPECT_THAT(packing.not_placed, IsEmpty());
  check_limits(fleet, wanted, packing.placed);
  EXPECT_THAT(Solver::open("/no/such/libserin_packing.so").error().message,
              HasSubstr("an exact answer needs libserin_packing.so: /no/such"));
}

}  // namespace
}  // namespace serin::planner
