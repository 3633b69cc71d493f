#include "runtime/base/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace serin {
namespace {

TEST(NearestName, CountsLettersThatAreWrong) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("digits", "digits"), 0u);
  EXPECT_EQ(edit_distance("digit", "digits"), 1u);
  EXPECT_EQ(edit_distance("digtis", "digits"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("aab", "ab"), 1u);  // what they begin with and what they end with overlap
}

TEST(NearestName, GuessesOnlyWhatIsNear) {
  const std::vector<std::string> names = {"digits", "minilm", "resnet50"};
  EXPECT_EQ(nearest_name("digit", names), "digits");
  EXPECT_EQ(nearest_name("Minilm", names), "minilm");
  EXPECT_EQ(nearest_name("resnet-50", names), "resnet50");
  EXPECT_EQ(nearest_name("DIGITS", names), "digits");
  EXPECT_EQ(nearest_name("bert", names), "");
  EXPECT_EQ(did_you_mean("digit", names), "; did you mean 'digits'?");
  EXPECT_EQ(did_you_mean("bert", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'd'), names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("digits", std::vector<std::string>()), "");
}

TEST(NearestName, LooksAtAllOfMany) {
  std::vector<std::string> columns;
  for (int i = 0; i < 5000; ++i) columns.push_back("customer_transaction_aggregate_feature_column_with_a_long_number_" + std::to_string(i));
  EXPECT_EQ(nearest_name("customer_transaction_aggregate_feature_column_with_a_long_nunber_4999", columns), columns.back());
}

}  // namespace
}  // namespace serin
