#include "runtime/registry/aws_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/registry/aws_variables.h"

namespace serin::registry {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFile =
    "# comment\n[default]\naws_access_key_id = AKIA1\naws_secret_access_key=s3cret=/+\n\n"
    "[ two ]\r\naws_access_key_id=AKIA2\r\naws_secret_access_key = other\r\naws_session_token = token==\r\n[half]\naws_access_key_id = "
    "AKIA3\n";

class AwsSettings : public ::testing::Test {
 protected:
  AwsVariables aws;

  std::string refusal() {
    const auto read = aws_credentials();
    return read ? "no refusal" : read.error().message;
  }
};

TEST_F(AwsSettings, KeysComeFromTheEnvironmentFirst) {
  aws.write(".aws/credentials", kFile);
  aws.set("AWS_ACCESS_KEY_ID", "AKIA0");
  aws.set("AWS_SECRET_ACCESS_KEY", " secret\n");
  aws.set("AWS_SESSION_TOKEN", "token");
  const AwsCredentials read = aws_credentials().value();
  EXPECT_EQ(read.key->id, "AKIA0");
  EXPECT_EQ(read.key->secret, "secret");
  EXPECT_EQ(read.key->token, "token");
  EXPECT_EQ(read.source, "AWS_ACCESS_KEY_ID");
}

TEST_F(AwsSettings, KeysComeFromAProfile) {
  const std::string path = aws.write(".aws/credentials", kFile);
  EXPECT_EQ(aws_credentials()->key->secret, "s3cret=/+");
  aws.set("AWS_PROFILE", "two");
  const AwsCredentials read = aws_credentials().value();
  EXPECT_EQ(read.key->id, "AKIA2");
  EXPECT_EQ(read.key->token, "token==");
  EXPECT_EQ(read.source, "profile 'two' of " + path);
}

TEST_F(AwsSettings, TheFileCanBeElsewhere) {
  aws.set("AWS_SHARED_CREDENTIALS_FILE", aws.write("keys", kFile));
  EXPECT_EQ(aws_credentials()->key->id, "AKIA1");
  aws.set("AWS_SHARED_CREDENTIALS_FILE", "~/keys");
  EXPECT_EQ(aws_credentials()->key->id, "AKIA1");
}

TEST_F(AwsSettings, ReplacedKeysCountAtOnce) {
  aws.write(".aws/credentials", kFile);
  EXPECT_EQ(aws_credentials()->key->id, "AKIA1");
  aws.write(".aws/credentials", "[default]\naws_access_key_id=AKIA9\naws_secret_access_key=x");
  EXPECT_EQ(aws_credentials()->key->id, "AKIA9");
}

TEST_F(AwsSettings, WithoutKeysNothingIsSignedAndTheReasonIsKnown) {
  EXPECT_FALSE(aws_credentials()->key);
  EXPECT_THAT(aws_credentials()->source,
              AllOf(HasSubstr("there is no AWS_ACCESS_KEY_ID, and"), HasSubstr("/.aws/credentials does not exist")));
  aws.write(".aws/credentials", "[other]\naws_access_key_id=A\n");
  EXPECT_THAT(aws_credentials()->source, HasSubstr("has no profile 'default'"));
}

TEST_F(AwsSettings, HalfOfAKeyIsRefused) {
  aws.set("AWS_ACCESS_KEY_ID", "AKIA0");
  EXPECT_THAT(refusal(), HasSubstr("one is set and the other is not"));
  aws.set("AWS_ACCESS_KEY_ID", "");
  aws.set("AWS_PROFILE", "half");
  aws.write(".aws/credentials", kFile);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("profile 'half' of"), HasSubstr("lacks aws_access_key_id or aws_secret_access_key")));
}

TEST_F(AwsSettings, WhatIsNamedAndMissingIsRefused) {
  aws.set("AWS_PROFILE", "three");
  EXPECT_THAT(refusal(), HasSubstr("/.aws/credentials"));
  aws.write(".aws/credentials", kFile);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("has no profile 'three', which AWS_PROFILE names"), Not(HasSubstr("s3cret"))));
  aws.set("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/keys");
  EXPECT_THAT(refusal(), HasSubstr("/nowhere/keys"));
}

TEST_F(AwsSettings, AFileThatOthersCanReadIsRefused) {
  aws.write(".aws/credentials", kFile, 0644);
  EXPECT_THAT(refusal(), HasSubstr("chmod 600 it"));
}

TEST_F(AwsSettings, TheRegionHasADefault) {
  EXPECT_EQ(aws_region(), "us-east-1");
  aws.write(".aws/config", "[default]\nregion = eu-north-1\n[profile two]\nregion=eu-west-3\n", 0644);
  EXPECT_EQ(aws_region(), "eu-north-1");
  aws.set("AWS_PROFILE", "two");
  EXPECT_EQ(aws_region(), "eu-west-3");
  aws.set("AWS_DEFAULT_REGION", "eu-west-2");
  EXPECT_EQ(aws_region(), "eu-west-2");
  aws.set("AWS_REGION", "eu-west-1");
  EXPECT_EQ(aws_region(), "eu-west-1");
}

TEST_F(AwsSettings, TheEndpointOfS3IsBeforeThatOfAll) {
  EXPECT_EQ(aws_endpoint(), "");
  aws.set("AWS_ENDPOINT_URL", "http://all");
  EXPECT_EQ(aws_endpoint(), "http://all");
  aws.set("AWS_ENDPOINT_URL_S3", "http://s3");
  EXPECT_EQ(aws_endpoint(), "http://s3");
}

}  // namespace
}  // namespace serin::registry
