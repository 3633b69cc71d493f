// loop_test.cc: the order of what an io thread runs, and what becomes of what it throws.

#include "runtime/net/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace serin::net {
namespace {

using ::testing::ElementsAre;

TEST(Loop, WhatIsPostedHereRunsAfterAllThatTheTurnHasBroughtAlready) {
  Loops loops(1);
  std::vector<std::string> ran;
  loops.post_and_wait(0, [&] {  // so that both of the next come in one turn
    loops.post(0, [&] {
      loops.loop(0).post([&] { ran.emplace_back("put off"); });
      ran.emplace_back("first");
    });
    loops.post(0, [&] { ran.emplace_back("second"); });
  });
  loops.post_and_wait(0, [] {});
  loops.post_and_wait(0, [] {});
  EXPECT_THAT(ran, ElementsAre("first", "second", "put off"));
}

TEST(Loop, WhatThrowsTakesNothingElseDown) {
  Loops loops(1);
  std::vector<std::string> ran;
  loops.post_and_wait(0, [&] {
    loops.loop(0).run([&] {
      ran.emplace_back("throws");
      throw std::runtime_error("as a test wants it");
    });
    ran.emplace_back("goes on");
    loops.loop(0).post([] { throw std::runtime_error("as a test wants it"); });
    loops.loop(0).post([&] { ran.emplace_back("and on"); });
  });
  loops.post_and_wait(0, [] {});
  EXPECT_THAT(ran, ElementsAre("throws", "goes on", "and on"));
}

}  // namespace
}  // namespace serin::net
