// result_test.cc: errors travel with their words.

#include "runtime/base/result.h"

#include <gtest/gtest.h>

namespace serin {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{Code::kInvalidArgument, "odd"};
  return n / 2;
}

Result<int> quarter(int n) {
  SERIN_TRY(const int once, half(n));
  SERIN_TRY(const int twice, half(once));
  return twice;
}

Status check_quarter(int n) {
  SERIN_CHECK(quarter(n));
  return {};
}

TEST(Result, TryReturnsTheValueOrTheError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check_quarter(4));
  EXPECT_EQ(check_quarter(2).error().code, Code::kInvalidArgument);
}

TEST(Result, ContextGoesInFront) { EXPECT_EQ((Error{Code::kIo, "disk full"}.in("model 'x'").message), "model 'x': disk full"); }

TEST(Result, ValueOfAnErrorThrowsWithItsMessage) {
  try {
    (void)quarter(3).value();
    FAIL() << "must throw";
  } catch (const std::logic_error& e) {
    EXPECT_NE(std::string(e.what()).find("odd"), std::string::npos);
  }
}

TEST(Result, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) EXPECT_FALSE(code_name(static_cast<Code>(code)).empty());
}

}  // namespace
}  // namespace serin
