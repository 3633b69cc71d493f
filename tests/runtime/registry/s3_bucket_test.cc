#include "runtime/registry/s3_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/registry/aws_variables.h"

namespace serin::registry {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class S3BucketTest : public ::testing::Test {
 protected:
  AwsVariables aws;

  static std::string url(const char* address) {
    const auto bucket = S3Bucket::open(address);
    return bucket ? text_of((*bucket)->folder_url()) : bucket.error().message;
  }
};

TEST_F(S3BucketTest, AtAwsTheBucketIsAPartOfTheHost) {
  EXPECT_EQ(url("s3://models/registry"), "https://models.s3.us-east-1.amazonaws.com/registry");
  EXPECT_EQ(url("s3://models"), "https://models.s3.us-east-1.amazonaws.com");
  aws.set("AWS_REGION", "cn-north-1");
  EXPECT_EQ(url("s3://models/a/b//"), "https://models.s3.cn-north-1.amazonaws.com.cn/a/b");
  EXPECT_EQ(url("s3://models.corp/a"), "https://s3.cn-north-1.amazonaws.com.cn/models.corp/a");  // certificates have one part for it
}

TEST_F(S3BucketTest, AtOtherServersItIsAPartOfThePath) {
  for (const char* endpoint : {"http://minio:9000", "http://minio:9000/", "http://minio:9000//"}) {
    aws.set("AWS_ENDPOINT_URL_S3", endpoint);
    EXPECT_EQ(url("s3://models/registry"), "http://minio:9000/models/registry");
  }
  aws.set("AWS_ENDPOINT_URL_S3", "https://[::1]:443/storage/");
  EXPECT_EQ(url("s3://models"), "https://[::1]/storage/models");
}

TEST_F(S3BucketTest, TheNamesOfAPrefixAreEscapedOnce) {
  aws.set("AWS_ENDPOINT_URL_S3", "http://minio");
  EXPECT_EQ(url("s3://models/a b+c/%20/ä=&?#~"), "http://minio/models/a%20b%2Bc/%2520/%C3%A4%3D%26%3F%23~");
}

TEST_F(S3BucketTest, WrongAddressesAreNamed) {
  for (const char* address :
       {"s3://", "s3:///x", "s3://ab", "s3://a/b", "s3://a b c/x", "s3://mo%64els/x", "s3://user@models/x", "s3://models//x",
        "s3://models/../x", "s3://models/a/./b", "s3://models/a\nb", "s3://..models", "http://models"})
    EXPECT_THAT(url(address), HasSubstr("is not s3://BUCKET[/PREFIX]")) << address;
}

TEST_F(S3BucketTest, WrongSettingsAreNamedWithoutTheirSecrets) {
  aws.set("AWS_REGION", "evil.com/");
  EXPECT_THAT(url("s3://models"), HasSubstr("AWS_REGION, 'evil.com/', is not one like"));
  aws.set("AWS_REGION", "eu-west-1");
  for (const char* endpoint : {"minio:9000", "ftp://minio", "http://user:hunter2@minio", "http://minio/?x", "http://"}) {
    aws.set("AWS_ENDPOINT_URL_S3", endpoint);
    EXPECT_THAT(url("s3://models"), AllOf(HasSubstr("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is not"), Not(HasSubstr("hunter2"))));
  }
}

TEST_F(S3BucketTest, RequestsHaveASignatureOnlyWithAKey) {
  const auto bucket = S3Bucket::open("s3://models").value();
  net::Outgoing request;
  request.headers.set("Range", "bytes=0-");
  ASSERT_TRUE(bucket->authorise(bucket->bucket_url().origin, request));
  EXPECT_FALSE(request.headers.has("Authorization"));
  aws.set("AWS_ACCESS_KEY_ID", "AKIA0");
  aws.set("AWS_SECRET_ACCESS_KEY", "hunter2");
  aws.set("AWS_SESSION_TOKEN", "token");
  ASSERT_TRUE(bucket->authorise(bucket->bucket_url().origin, request));
  EXPECT_THAT(std::string(request.headers.get("Authorization")),
              MatchesRegex("AWS4-HMAC-SHA256 Credential=AKIA0/[0-9]+/us-east-1/s3/aws4_request,"
                           "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token,Signature=[0-9a-f]+"));
  EXPECT_EQ(request.headers.get("x-amz-security-token"), "token");
}

TEST_F(S3BucketTest, RefusalsNameBucketAndKey) {
  aws.set("AWS_ENDPOINT_URL_S3", "http://minio/storage");
  const auto bucket = S3Bucket::open("s3://models/a b").value();
  net::Response answer{.status = 404};
  answer.body = "<Error><Code>NoSuchKey</Code></Error>";
  net::Url url = bucket->folder_url();
  url.path += "/digits/index.json";
  const Error error = bucket->refusal(url, answer, "said");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.message, "said: bucket 'models', key 'a b/digits/index.json': NoSuchKey: there is no such object");
  url.path = bucket->bucket_url().path + "/?list-type=2";
  EXPECT_THAT(bucket->refusal(url, answer, "said").message, HasSubstr("said: bucket 'models': NoSuchKey"));
}

}  // namespace
}  // namespace serin::registry
