#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

namespace serin {
namespace {

TEST(Utf8, AcceptsWhatRfc3629Does) {
  for (const auto* good :
       {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good));
  }
  for (const auto* bad : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xE0\xA0", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xF5\x80\x80\x80", "\xF8\x88\x80\x80\x80", "\xC2\x41"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(Utf8, APrefixEndsWithAWholeCharacter) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abcd", 3), "abc");
  for (const size_t most : {2U, 3U, 4U}) EXPECT_EQ(utf8_prefix("a\xF0\x9F\x98\x80", most), "a");
  EXPECT_EQ(utf8_prefix("\xC3\xA9\xC3\xA9", 3), "\xC3\xA9");
  EXPECT_EQ(utf8_prefix("\x80\x80\x80", 2), "") << "no text at all";
}

}  // namespace
}  // namespace serin
