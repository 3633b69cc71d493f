#include "runtime/base/html_escape.h"

#include <gtest/gtest.h>

namespace serin {
namespace {

TEST(HtmlEscape, LeavesNothingThatAPageCouldRead) {
  EXPECT_EQ(html_escaped(R"(<a href="x" id='y'>1 & 2</a>)"), "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;1 &amp; 2&lt;/a&gt;");
  EXPECT_EQ(html_escaped("\u4f60\u597d"), "\u4f60\u597d");
}

}  // namespace
}  // namespace serin
