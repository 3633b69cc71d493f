// The examples that AWS publishes: "Signature Calculations for the Authorization Header" of the Amazon S3 API Reference, and aws-sig-v4-test-suite.
#include "runtime/registry/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace serin::registry {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr const char* kNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";  // SHA-256 of no bytes
const AwsKey kKey{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const SigningScope kScope{"20130524T000000Z", "us-east-1"};

net::Outgoing request(const char* method, const char* target, std::initializer_list<std::pair<const char*, const char*>> headers) {
  net::Outgoing made{.method = method, .target = target, .headers = {}, .body = nullptr};
  for (const auto& [name, value] : headers) made.headers.add(name, value);
  return made;
}

std::string of_bucket(const net::Outgoing& asked, const char* payload = kNothing) {
  return authorization(asked, "examplebucket.s3.amazonaws.com", payload, kKey, kScope);
}

TEST(Sigv4, GetObject) {
  EXPECT_EQ(of_bucket(request("GET", "/test.txt",
                              {{"Range", "bytes=0-9"}, {"x-amz-content-sha256", kNothing}, {"x-amz-date", "20130524T000000Z"}})),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Sigv4, PutObjectWithAnEscapedKey) {
  constexpr const char* kText = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";  // "Welcome to Amazon S3."
  EXPECT_THAT(of_bucket(request("PUT", "/test%24file.text",
                                {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                 {"x-amz-content-sha256", kText},
                                 {"x-amz-date", "20130524T000000Z"},
                                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}),
                        kText),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(Sigv4, AParameterWithoutAValue) {
  EXPECT_THAT(of_bucket(request("GET", "/?lifecycle", {{"x-amz-content-sha256", kNothing}, {"x-amz-date", "20130524T000000Z"}})),
              EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(Sigv4, AListOfObjects) {
  for (const char* target : {"/?max-keys=2&prefix=J", "/?prefix=J&max-keys=2"})
    EXPECT_THAT(of_bucket(request("GET", target, {{"x-amz-content-sha256", kNothing}, {"x-amz-date", "20130524T000000Z"}})),
                EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

std::string of_suite(const net::Outgoing& asked) {
  return authorization(asked, "example.amazonaws.com", kNothing, {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""},
                       {"20150830T123600Z", "us-east-1", "service"});
}

TEST(Sigv4, TheSuiteOfAws) {
  const auto dated = [](const char* target) { return request("GET", target, {{"X-Amz-Date", "20150830T123600Z"}}); };
  EXPECT_THAT(of_suite(dated("/")), HasSubstr("SignedHeaders=host;x-amz-date,"
                                              "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
  EXPECT_THAT(of_suite(dated("/?Param2=value2&Param1=value1")),
              EndsWith("Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST(Sigv4, SpacesOfHeadersAndTheCaseOfTheirNamesDoNotCount) {
  const auto with = [](const char* name, const char* value) {
    return of_suite(request("GET", "/", {{"X-Amz-Date", "20150830T123600Z"}, {name, value}}));
  };
  EXPECT_EQ(with("My-Header1", "a   b \t c"), with("my-header1", "a b c"));
  EXPECT_NE(with("my-header1", "a b c"), with("my-header1", "a b d"));
}

}  // namespace
}  // namespace serin::registry
