// Which accelerator of a fleet gets the load of which card. Real series of a Prometheus are read in tests/e2e/runtime/test_plan_prometheus.py.

#include "runtime/planner/fleet_load.h"

#include <gmock/gmock.h>

namespace serin::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kGB = 1e9;

Accelerator l4(double busy = 0, double used = 0) {
  return {.name = "NVIDIA L4", .card = "NVIDIA L4", .memory = 23 * kGB, .memory_used = used, .busy = busy};
}

Accelerator taken() { return l4(1, 23 * kGB); }

MeasuredCard card(const std::string& node, const std::string& gpu, std::optional<double> busy, std::optional<double> bytes) {
  return {.node = node, .gpu = gpu, .model = "NVIDIA L4", .slice = "", .of_pod = false, .busy = busy, .bytes = bytes};
}

class FleetLoad : public testing::Test {
 protected:
  void add_node(const std::string& name, std::vector<Accelerator> accelerators) {
    FleetNode node;
    node.name = name;
    node.accelerators = std::move(accelerators);
    fleet_.nodes.push_back(std::move(node));
  }
  size_t apply(std::vector<MeasuredCard> cards) { return apply_load(std::move(cards), catalogue_, fleet_); }
  Accelerator& at(size_t node, size_t accelerator) { return fleet_.nodes[node].accelerators[accelerator]; }

  Catalogue catalogue_ = *Catalogue::load("");
  Fleet fleet_;
};

TEST_F(FleetLoad, IsGivenInTheOrderOfTheCards) {
  add_node("a", {l4(0.9), l4(0.9)});
  EXPECT_EQ(apply({card("a", "0", 0.5, 2 * kGB), card("a", "1", 0.25, 0)}), 2U);
  EXPECT_EQ(at(0, 0).busy, 0.5);
  EXPECT_EQ(at(0, 0).memory_used, 2 * kGB);
  EXPECT_EQ(at(0, 1).busy, 0.25);
  EXPECT_THAT(fleet_.notes, IsEmpty());
}

TEST_F(FleetLoad, CardsOfPodsAreThoseThatAreInUseAsAWhole) {
  add_node("a", {l4(), taken()});
  auto of_pod = card("a", "0", 0.02, 1 * kGB);
  of_pod.of_pod = true;
  EXPECT_EQ(apply({of_pod, card("a", "1", 0.75, 3 * kGB)}), 2U);
  EXPECT_EQ(at(0, 0).busy, 0.75);
  EXPECT_EQ(at(0, 1).busy, 1) << "the scheduler shares it with nothing, so it stays taken";
}

TEST_F(FleetLoad, WithoutPodsTheFullestCardsAreThoseInUseAsAWhole) {
  add_node("a", {taken(), l4(), l4()});
  EXPECT_EQ(apply({card("a", "0", 0.1, 1 * kGB), card("a", "1", 0.9, 20 * kGB), card("a", "2", 0.2, 2 * kGB)}), 3U);
  EXPECT_EQ(at(0, 0).busy, 1);
  EXPECT_EQ(at(0, 1).busy, 0.1);
  EXPECT_EQ(at(0, 2).busy, 0.2);
}

TEST_F(FleetLoad, AbsentFiguresAndCardsLeaveWhatTheFileSays) {
  add_node("a", {l4(0.9, 5 * kGB), l4(0.8)});
  EXPECT_EQ(apply({card("a", "3", std::nullopt, 2 * kGB)}), 1U);
  EXPECT_EQ(at(0, 0).busy, 0.9);
  EXPECT_EQ(at(0, 0).memory_used, 2 * kGB);
  EXPECT_EQ(at(0, 1).busy, 0.8);
  EXPECT_THAT(fleet_.notes,
              ElementsAre(HasSubstr("the busy time of card 3 is not measured"), HasSubstr("1 of 2 NVIDIA L4 are not measured")));
}

TEST_F(FleetLoad, NoCardHasMoreThanItCan) {
  add_node("a", {l4(), l4()});
  apply({card("a", "0", 1.5, 99 * kGB), card("a", "1", -1, -1)});
  EXPECT_EQ(at(0, 0).free_time(), 0);
  EXPECT_EQ(at(0, 0).free_memory(), 0);
  EXPECT_EQ(at(0, 1).free_time(), 1);
  EXPECT_EQ(at(0, 1).memory_used, 0);
}

TEST_F(FleetLoad, CardsWithoutAPlaceAreNamed) {
  add_node("a", {l4()});
  fleet_.nodes[0].labels["kubernetes.io/hostname"] = "a.example.org";
  auto unknown = card("a", "1", 0, 0), other = card("a", "2", 0, 0), sliced = card("a", "3/7", 0, 0), several = card("a", "4", 0, 0);
  unknown.model = "Voodoo 2";
  other.model = "Tesla T4";
  sliced.slice = "1g.5gb";
  several.model = "A100";
  EXPECT_EQ(apply({card("a.example.org", "0", 0.5, 0), card("a", "9", 0.1, 0), unknown, other, sliced, several, card("b", "0", 0, 0)}), 1U);
  EXPECT_EQ(at(0, 0).busy, 0.5);
  EXPECT_THAT(fleet_.notes,
              ElementsAre(HasSubstr("card 1 is a 'Voodoo 2', which the catalogue lacks"), HasSubstr("the fleet has no Tesla T4 there"),
                          HasSubstr("the fleet has no NVIDIA L4 1g.5gb there"), HasSubstr("card 4 is a 'A100', which may be"),
                          HasSubstr("2 NVIDIA L4 are measured, and the fleet has 1 there"), HasSubstr("cards 0 of the host 'b'")));
}

}  // namespace
}  // namespace serin::planner
