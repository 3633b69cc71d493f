// A kept class as a line: what is printed is read again, and nothing else is.

#include "router/outcomes/prediction_text.h"

#include <gmock/gmock.h>

namespace serin::router {
namespace {

using Kind = Prediction::Kind;

std::string printed(const PredictionEntry& entry) {
  std::string line;
  print_line(line, 1764437000123, "4f1c", entry);
  return line;
}

TEST(PredictionText, EveryKindIsReadAsItWasPrinted) {
  for (const Prediction& prediction : {Prediction{.kind = Kind::kNumbers, .rows = {code_of(3.), code_of(-1.5), 0}},
                                       Prediction{.kind = Kind::kTexts, .rows = {code_of("cat")}}, Prediction{.kind = Kind::kFailed},
                                       Prediction{.kind = Kind::kUnread, .why = "its answer was a poem, of two lines"}}) {
    const PredictionEntry entry{
        .assigned = "2;1=950000,2=50000;00000000c0ffee42;1764437000123", .asked = ~uint64_t{0}, .prediction = prediction};
    const std::string line = printed(entry);
    const auto read = parse_line(line);
    ASSERT_TRUE(read && read->entry) << line;
    EXPECT_EQ(read->at_ms, 1764437000123);
    EXPECT_EQ(read->id, "4f1c");
    EXPECT_EQ(read->entry->assigned, entry.assigned);
    EXPECT_EQ(read->entry->asked, entry.asked);
    EXPECT_EQ(read->entry->prediction.kind, prediction.kind);
    EXPECT_EQ(read->entry->prediction.rows, prediction.rows);
    EXPECT_EQ(read->entry->prediction.why, prediction.why);
  }
}

TEST(PredictionText, AnIdOfTwoRequestsHasALineOfItsOwn) {
  std::string line;
  print_ambiguous(line, "4f1c");
  const auto read = parse_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, "4f1c");
  EXPECT_FALSE(read->entry);
}

TEST(PredictionText, ClassesHaveTheSameCodeInEveryProcess) {
  EXPECT_EQ(printed({.assigned = "1", .asked = 10, .prediction = {.kind = Kind::kTexts, .rows = {code_of("cat"), code_of(2.)}}}),
            "1764437000123 t a 4f1c 1 c14d5c6bab9d877,4000000000000000");
}

TEST(PredictionText, OtherLinesAreRefused) {
  for (const char* line : {"", " ", "x n 0 id 1 0", "1", "1 n", "1 n 0", "1 n 0 id", "1 n zz id 1 0", "1 q 0 id 1 0", "1 nn 0 id 1 0",
                           "1 n 0 id 1 0,g", "1 n 0 id 1 0,11223344556677889", "1 n 0  1 0", "99999999999999999999 n 0 id 1 0"})
    EXPECT_FALSE(parse_line(line)) << line;
}

}  // namespace
}  // namespace serin::router
