#include "runtime/formats/onnx/names.h"

#include <gtest/gtest.h>

#include <string>

namespace serin::formats::onnx {
namespace {

TEST(Names, AreReadableInErrors) {
  EXPECT_EQ(quote("conv_1"), "'conv_1'");
  EXPECT_EQ(printable("a\nb\x7f\x1b[31m"), "a?b??[31m");
  EXPECT_EQ(printable("größe"), "größe");
  EXPECT_EQ(printable(std::string(kLongestName, 'x')), std::string(kLongestName, 'x'));
  EXPECT_EQ(printable(std::string(kLongestName + 1, 'x')), std::string(kLongestName, 'x') + "...");
}

TEST(Names, TheDefaultDomainHasTwo) {
  EXPECT_EQ(without_alias("ai.onnx"), "");
  EXPECT_EQ(without_alias(""), "");
  EXPECT_EQ(without_alias("ai.onnx.ml"), "ai.onnx.ml");
}

}  // namespace
}  // namespace serin::formats::onnx
