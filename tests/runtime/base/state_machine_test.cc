#include "runtime/base/state_machine.h"

#include <gtest/gtest.h>

namespace serin {
namespace {

enum class Door : uint8_t { kOpen, kClosed, kLocked };
constexpr StateSet next(Door from) {
  switch (from) {
    case Door::kOpen: return StateSet(Door::kClosed);
    case Door::kClosed: return StateSet(Door::kOpen, Door::kLocked);
    case Door::kLocked: break;
  }
  return StateSet();
}

TEST(StateMachine, FollowsTheTable) {
  StateMachine<Door, next> door(Door::kOpen);
  door.enter(Door::kClosed);
  EXPECT_TRUE(door.in(Door::kOpen, Door::kClosed));
  door.enter(Door::kLocked);
  EXPECT_EQ(door.now(), Door::kLocked);
  EXPECT_FALSE(door.in(Door::kOpen, Door::kClosed));
}

#ifndef NDEBUG
TEST(StateMachineDeathTest, RefusesWhatTheTableDoesNotHave) {
  StateMachine<Door, next> door(Door::kOpen);
  EXPECT_DEATH(door.enter(Door::kLocked), "enter");
  EXPECT_DEATH(door.enter(Door::kOpen), "enter");
}
#endif

}  // namespace
}  // namespace serin
