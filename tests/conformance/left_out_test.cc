// The list of what is left out: how it is read and rewritten. What the list decides, conformance_test.cc says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/conformance/suite.h"

namespace serin::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class LeftOutFile : public ::testing::Test {
 protected:
  LeftOutFile() : path_(::testing::TempDir() + "/left_out_" + std::to_string(::getpid()) + ".txt") {}
  ~LeftOutFile() override { std::filesystem::remove(path_); }

  Result<LeftOut> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_left_out(path_);
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
};

TEST_F(LeftOutFile, NamesAndReasons) {
  const auto left_out = read("# why\n\ntest_a  it is random\ntest_b  nobody has one\n");
  ASSERT_TRUE(left_out) << left_out.error().message;
  EXPECT_THAT(*left_out, ElementsAre(Pair("test_a", "it is random"), Pair("test_b", "nobody has one")));
}

TEST_F(LeftOutFile, ANameWithoutAReasonOrTwiceIsRefused) {
  EXPECT_THAT(read("test_a\n").error().message, HasSubstr("'test_a' has no reason"));
  EXPECT_THAT(read("test_a  x\ntest_a  y\n").error().message, HasSubstr("'test_a' is listed twice"));
}

TEST_F(LeftOutFile, UpdatingKeepsReasonsAndDropsWhatPasses) {
  ASSERT_TRUE(read("# why\ntest_a  it is random\ntest_b  nobody has one\n"));
  ASSERT_TRUE(write_left_out(path_, {{"test_a", "output 0: differs"}, {"test_c", "output 1: differs"}}));
  EXPECT_EQ(text(), "# why\ntest_a  it is random\ntest_c  output 1: differs\n");
}

}  // namespace
}  // namespace serin::conformance
