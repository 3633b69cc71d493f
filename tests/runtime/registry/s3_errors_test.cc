#include "runtime/registry/s3_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace serin::registry {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const S3Request kSigned{.key = "AWS_ACCESS_KEY_ID", .is_signed = true, .region = "us-east-1", .time = "20261129T120000Z"};
const S3Request kUnsigned{.key = "there is no AWS_ACCESS_KEY_ID", .is_signed = false, .region = "us-east-1", .time = ""};

net::Response answer(int status, std::string body) {
  net::Response made{.status = status};
  made.body = std::move(body);
  return made;
}

Error meaning(int status, std::string body, const S3Request& request = kSigned) {
  return s3_error(answer(status, std::move(body)), "said", request);
}

std::string code(const char* name) {
  return std::string("<?xml version=\"1.0\"?>\n<Error><Code>") + name + "</Code><Message>its own words</Message></Error>";
}

struct Known {
  int status;
  const char* name;
  Code code;
  const char* words;
};

TEST(S3Errors, KnownCodesSayWhatToDo) {
  for (const Known& each :
       {Known{404, "NoSuchBucket", Code::kFailedPrecondition, "check its name"}, Known{404, "NoSuchKey", Code::kNotFound, "no such object"},
        Known{403, "AccessDenied", Code::kPermissionDenied, "s3:GetObject"},
        Known{403, "InvalidAccessKeyId", Code::kPermissionDenied, "does not know the access key of AWS_ACCESS_KEY_ID"},
        Known{403, "SignatureDoesNotMatch", Code::kPermissionDenied, "the secret of AWS_ACCESS_KEY_ID"},
        Known{400, "ExpiredToken", Code::kPermissionDenied, "has expired"},
        Known{412, "PreconditionFailed", Code::kConflict, "changed it meanwhile"},
        Known{503, "SlowDown", Code::kUnavailable, "try again later"},
        Known{400, "RequestTimeout", Code::kUnavailable, "try again later"}}) {
    const Error error = meaning(each.status, code(each.name));
    EXPECT_EQ(error.code, each.code) << each.name;
    EXPECT_THAT(error.message, AllOf(HasSubstr(std::string("said: ") + each.name), HasSubstr(each.words)));
  }
}

TEST(S3Errors, AClockThatIsWrongIsComparedWithTheServers) {
  net::Response skewed = answer(403, code("RequestTimeTooSkewed"));
  skewed.headers.set("Date", "Sun, 29 Nov 2026 13:00:00 GMT");
  EXPECT_THAT(s3_error(skewed, "said", kSigned).message,
              AllOf(HasSubstr("20261129T120000Z"), HasSubstr("the server's Sun, 29 Nov 2026 13:00:00 GMT")));
}

TEST(S3Errors, AnotherRegionIsNamed) {
  EXPECT_THAT(meaning(400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>").message,
              HasSubstr("the bucket is in region 'eu-west-1' and not in 'us-east-1'; set AWS_REGION=eu-west-1"));
  net::Response moved = answer(301, "");
  EXPECT_THAT(s3_error(moved, "said", kSigned).message, HasSubstr("check AWS_REGION (now 'us-east-1')"));
  moved.headers.set("x-amz-bucket-region", "eu-west-1");
  EXPECT_THAT(s3_error(moved, "said", kSigned).message, HasSubstr("set AWS_REGION=eu-west-1"));
}

TEST(S3Errors, WithoutAKeyTheReasonIsNamed) {
  for (const std::string& body : {code("AccessDenied"), std::string()})
    EXPECT_THAT(meaning(403, body, kUnsigned).message, HasSubstr("requests are not signed, because there is no AWS_ACCESS_KEY_ID"));
}

TEST(S3Errors, OtherCodesComeWithTheServersSentence) {
  EXPECT_EQ(meaning(403, code("Strange")).message, "said: Strange (its own words)");
  EXPECT_EQ(meaning(403, code("Strange")).code, Code::kPermissionDenied);
  const std::string hostile =
      "<Error><Code>" + std::string(5000, 'x') + "\x1b[2J</Code><Message>\n" + std::string(5000, '\xff') + "</Message></Error>";
  EXPECT_THAT(meaning(400, hostile).message, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n")), Not(HasSubstr("\xff"))));
  EXPECT_LT(meaning(400, hostile).message.size(), 500U);
}

TEST(S3Errors, AnAnswerThatIsNotOneOfS3SaysSo) {
  const Error page = meaning(404, "<html>not here</html>");
  EXPECT_EQ(page.code, Code::kNotFound);
  EXPECT_THAT(page.message, HasSubstr("the answer is not one of S3, so check AWS_ENDPOINT_URL_S3"));
  EXPECT_EQ(meaning(404, "").message, "said");
  EXPECT_EQ(meaning(412, "").code, Code::kConflict);
  EXPECT_EQ(meaning(502, "<html>").code, Code::kUnavailable);
}

}  // namespace
}  // namespace serin::registry
