// The text of an assignment is read as it was written, and nothing else is.

#include "router/outcomes/assignment.h"

#include <gmock/gmock.h>

namespace serin::router {
namespace {

std::string text_of(std::string_view version, std::initializer_list<NamedShare> shares, uint64_t id) {
  std::string text;
  append_assignment(text, version, shares, id, 1'764'437'000'123);
  return text;
}

TEST(Assignment, IsAShortLine) {
  EXPECT_EQ(text_of("2", {{"1", 950'000}, {"2", 50'000}}, 0xc0ffee42), "2;1=950000,2=50000;00000000c0ffee42;1764437000123");
  EXPECT_EQ(text_of("2", {{"3", 0}, {"1", 950'000}, {"2", 50'000}}, ~uint64_t{0}), "2;1=950000,2=50000;ffffffffffffffff;1764437000123")
      << "a version without a share was not among them";
}

TEST(Assignment, IsReadAsItWasWritten) {
  for (const std::string_view odd : {"2024-05-01", "a;b", "a,b=c", "100%", "mod\xC3\xA8le", "~_."}) {
    const std::string text = text_of(odd, {{"1", 500'000}, {odd, 250'000}, {"other", 250'000}}, 42);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._~%;,="), std::string::npos) << text;
    const auto read = parse_assignment(text);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->version, odd);
    EXPECT_EQ(read->id, 42U);
    EXPECT_EQ(read->at_ms, 1'764'437'000'123U);
    ASSERT_EQ(read->shares.size(), 3U);
    EXPECT_EQ(read->share_of("1"), 500'000U);
    EXPECT_EQ(read->share_of(odd), 250'000U);
    EXPECT_EQ(read->share_of("2"), 0U);
  }
}

TEST(Assignment, OfAnOlderRouterHasNoTime) {
  const auto read = parse_assignment("2;1=950000,2=50000;00000000c0ffee42");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->id, 0xc0ffee42U);
  EXPECT_EQ(read->at_ms, std::nullopt);
}

TEST(Assignment, AnythingElseIsRefused) {
  for (const std::string_view text : {"",
                                      ";;",
                                      "2",
                                      "2;1=950000,2=50000",
                                      "2;1=950000,2=50000;c0ffee42",
                                      "2;1=950000,2=50000;00000000c0ffeexx",
                                      "2;1=950000,2=50000;00000000c0ffee42;",
                                      "2;1=950000,2=50000;00000000c0ffee42;1x",
                                      "2;1=950000,2=50000;00000000c0ffee42;-1",
                                      "2;1=950000,2=50000;00000000c0ffee42;1;2",
                                      "2;1=950000,2=50001;00000000c0ffee42",
                                      "3;1=950000,2=50000;00000000c0ffee42",
                                      "2;2=1000000;00000000c0ffee42",
                                      "2;1=0,2=50000;00000000c0ffee42",
                                      "2;1=1,1=1,2=50000;00000000c0ffee42",
                                      "2;1=-1,2=5;00000000c0ffee42",
                                      "2;1,2=50000;00000000c0ffee42",
                                      "2;=9,2=50000;00000000c0ffee42",
                                      "%2;1=9,%2=9;00000000c0ffee42",
                                      "%zz;1=9,%zz=9;00000000c0ffee42",
                                      "2;1=4294967297,2=5;00000000c0ffee42",
                                      "2;1=950000,2=50000;-0000000c0ffee42"}) {
    const auto read = parse_assignment(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_THAT(read.error().message, testing::HasSubstr("x-serin-assigned"));
  }
  EXPECT_FALSE(parse_assignment("2;2=1," + std::string(9000, '1') + "=1;00000000c0ffee42").has_value());
}

}  // namespace
}  // namespace serin::router
