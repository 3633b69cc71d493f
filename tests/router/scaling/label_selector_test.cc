// label_selector_test.cc: selectors as an autoscaler and kubectl write them, and texts that are none.

#include "router/scaling/label_selector.h"

#include <gtest/gtest.h>

namespace serin::router {
namespace {

const LabelMap kLabels = {{"service", "digits"}, {"version", "1"}};

bool matches(std::string_view text) {
  const auto selector = LabelSelector::parse(text);
  EXPECT_TRUE(selector) << text;
  return selector && selector->matches(kLabels);
}

TEST(LabelSelector, MatchesByEqualityAndSets) {
  for (const char* text :
       {"", " ", "service=digits", "service==digits", "service=digits,version=1", "service = digits , version != 2", "version in (1,2)",
        "version in ( 2 , 1 ),service", "version notin (2,3)", "!track", "track!=canary", "track notin (a)"})
    EXPECT_TRUE(matches(text)) << text;
  for (const char* text :
       {"service=faces", "version!=1", "version in (2,3)", "version notin (1)", "track", "!service", "service=digits,version=2", "track=a"})
    EXPECT_FALSE(matches(text)) << text;
}

TEST(LabelSelector, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"=",         "a=",       "=b",  "!", "a b",    ",",     "a,",   "a in", "a in (",    "a in ()",
                           "a in (b,)", "a of (b)", "(a)", ")", "in (a)", "a=b=c", "a=!b", "a>1",  "a in (b))", "a!b"}) {
    const auto selector = LabelSelector::parse(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_NE(selector.error().message.find("labelSelector: '"), std::string::npos);
  }
}

}  // namespace
}  // namespace serin::router
