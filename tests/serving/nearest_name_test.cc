#include "runtime/serving/nearest_name.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace serin::serving {
namespace {

TEST(NearestName, CountsLettersThatAreWrong) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("digits", "digits"), 0u);
  EXPECT_EQ(edit_distance("digit", "digits"), 1u);
  EXPECT_EQ(edit_distance("digtis", "digits"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearestName, GuessesOnlyWhatIsNear) {
  const std::map<std::string, int> names = {{"digits", 0}, {"minilm", 0}, {"resnet50", 0}};
  EXPECT_EQ(nearest_name("digit", names), "digits");
  EXPECT_EQ(nearest_name("Minilm", names), "minilm");
  EXPECT_EQ(nearest_name("resnet-50", names), "resnet50");
  EXPECT_EQ(nearest_name("bert", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'd'), names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("digits", std::map<std::string, int>()), "");
}

}  // namespace
}  // namespace serin::serving
