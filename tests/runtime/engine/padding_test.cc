// What is proven of padding is so, of graphs that nobody has thought of.

#include <gtest/gtest.h>

#include "tests/runtime/engine/drawn_padding.h"

namespace serin::engine::test {
namespace {

TEST(Padding, WhatIsProvenOfAnyGraphIsSo) {
  const Held held = hold_padding(1500, reference(), {}, 1e-3f);
  EXPECT_GE(held.proven, 200) << "or this says little";
  EXPECT_GE(held.compared, 1000);
}

}  // namespace
}  // namespace serin::engine::test
