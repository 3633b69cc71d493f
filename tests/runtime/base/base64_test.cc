#include "runtime/base/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace serin {
namespace {

TEST(Base64, HasTheExamplesOfItsStandard) {  // RFC 4648, section 10
  const std::pair<const char*, const char*> examples[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, KeepsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
}

TEST(Base64, NeedsNoPaddingAndTakesNoOtherText) {
  EXPECT_EQ(decode_base64("Zg"), "f");
  for (const char* const wrong : {"Z", "Zg=", "Zg===", "Z g=", "Zm9v=", "Zg==Zg==", "-_=="}) EXPECT_FALSE(decode_base64(wrong)) << wrong;
}

}  // namespace
}  // namespace serin
