#include "runtime/registry/xml_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace serin::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(XmlTexts, ReadsTheElementsOfAName) {
  constexpr auto kList = R"(<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>a/</Prefix>
    <CommonPrefixes><Prefix>a/digits/</Prefix></CommonPrefixes><CommonPrefixes><Prefix >a/b&amp;c&#47;&#x2F;&#228;</Prefix></CommonPrefixes>
    <Prefixed>no</Prefixed><Prefix/><IsTruncated>false</IsTruncated></ListBucketResult>)";
  EXPECT_THAT(xml_texts(kList, "Prefix"), ElementsAre("a/", "a/digits/", "a/b&c//ä"));
  EXPECT_EQ(xml_text(kList, "IsTruncated"), "false");
  EXPECT_EQ(xml_text(kList, "CommonPrefixes"), "");
}

TEST(XmlTexts, FindsNothingInWhatIsNoXml) {
  for (const char* text : {"", "<", "<Code", "<Code>", "<Code>x", "<Code>x<", "<Code>x</Cod", "Code", "<Code/>", "<Code>x</Other></Code>",
                           "<html><body>no</body></html>", "{\"Code\":1}"})
    EXPECT_THAT(xml_texts(text, "Code"), IsEmpty()) << text;
}

TEST(XmlTexts, KeepsWhatIsNoReference) {
  EXPECT_EQ(xml_text("<M>a & b &; &unknown; &#; &#x; &#xFFFFFFFF; &#99999999; &amp</M>", "M"),
            "a & b &; &unknown; &#; &#x; &#xFFFFFFFF; &#99999999; &amp");
}

TEST(XmlTexts, TakesLittleTimeForHostileText) {
  constexpr size_t kTimes = 1 << 20;
  std::string text;
  for (size_t i = 0; i < kTimes; ++i) text += "<Code ";
  text += ">";
  for (size_t i = 0; i < kTimes; ++i) text += "&&";
  EXPECT_THAT(xml_texts(text, "Code"), IsEmpty());
  EXPECT_EQ(xml_text("<M>" + std::string(kTimes, '&') + "</M>", "M").size(), kTimes);
}

}  // namespace
}  // namespace serin::registry
