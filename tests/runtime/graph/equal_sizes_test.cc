#include "runtime/graph/ops/equal_sizes.h"

#include "tests/runtime/graph/graphs.h"

namespace serin::graph {
namespace {

using Sizes = EqualSizes;

Sizes found(std::string_view text, Sizes known = {}) { return find_equal_sizes(graph_of(text), std::move(known)); }

TEST(EqualSizes, AreThoseThatMeetInASum) {
  EXPECT_EQ(found("a: f32[batch,b_len,8]\nb: f32[batch,a_len,8]\ny = Add(a, b)\nreturn y"), (Sizes{{"a_len", "b_len"}}))
      << "the symbol of the first input stays";
  EXPECT_EQ(found("a: f32[batch,p]\nb: f32[batch,q]\ny = Less(a, b)\nreturn y"), (Sizes{{"q", "p"}}));
  EXPECT_EQ(found("a: f32[batch,p,8]\nb: f32[q,1]\ny = Mul(a, b)\nreturn y"), (Sizes{{"q", "p"}})) << "axes count from the back";
  EXPECT_EQ(found("a: f32[p]\nb: f32[q]\nc: bool[r]\ny = Where(c, a, b)\nreturn y"), (Sizes{{"q", "p"}, {"r", "p"}}));
}

TEST(EqualSizes, LeaveWhatNeedNotBeEqual) {
  EXPECT_EQ(found("a: f32[p,8]\nb: f32[q,8]\ny = Concat(a, b, axis=0)\nreturn y"), Sizes{});
  EXPECT_EQ(found("a: f32[batch]\nb: f32[p]\ny = Add(a, b)\nreturn y"), Sizes{}) << "rows of a batch are nobody's length";
  EXPECT_EQ(found("a: f32[p]\nb: f32[1]\nc: f32[3]\ny = Add(a, b)\nz = Add(y, c)\nreturn z"), Sizes{}) << "numbers";
  EXPECT_EQ(found("a: f32[p]\nb: f32[2*q]\ny = Add(a, b)\nreturn y"), Sizes{}) << "no bare symbol";
  EXPECT_EQ(found("a: f32[p]\nb: f32[p]\ny = Add(a, b)\nreturn y"), Sizes{});
}

TEST(EqualSizes, AddToThoseThatAreKnown) {
  const std::string_view chain = "a: f32[p]\nb: f32[q]\nc: f32[p]\nd: f32[r]\ny = Add(b, d)\nz = Sub(a, c)\nreturn y, z";
  EXPECT_EQ(found(chain), (Sizes{{"r", "q"}}));
  EXPECT_EQ(found("a: f32[p]\nb: f32[q]\ny = Add(a, b)\nreturn y", {{"r", "q"}}), (Sizes{{"q", "p"}, {"r", "p"}})) << "as q did for r";
  EXPECT_EQ(found("a: f32[p]\nb: f32[p]\ny = Add(a, b)\nreturn y", {{"q", "p"}}), (Sizes{{"q", "p"}})) << "nothing new ends the search";
}

}  // namespace
}  // namespace serin::graph
