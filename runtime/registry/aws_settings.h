// aws_settings.h: access keys, region and endpoint, where the tools of AWS look for them.
//
// Keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else from the profile AWS_PROFILE (`default`) of the shared
// credentials file, ~/.aws/credentials or AWS_SHARED_CREDENTIALS_FILE. Web identities are those of web_identity.h. Metadata of instances and
// containers, roles of profiles, SSO and credential_process are not read.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/result.h"
#include "runtime/registry/sigv4.h"

namespace serin::registry {

struct AwsCredentials {
  std::optional<AwsKey> key;  ///< none: requests are not signed
  std::string source;         ///< for messages: where the key is from, or why there is none; never a secret
};

/// Of the environment, without spaces around it; empty: there is none.
std::string aws_variable(const char* name);

/// Reads them anew each time, since temporary keys are replaced while a server runs. Errors: kInvalidArgument (half a key), kNotFound (a
/// profile or file that is named and missing), kPermissionDenied (the file is readable by other users).
Result<AwsCredentials> aws_credentials();

/// AWS_REGION, AWS_DEFAULT_REGION, `region` of the profile in ~/.aws/config or AWS_CONFIG_FILE, else us-east-1.
std::string aws_region();

/// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL; empty: that of AWS.
std::string aws_endpoint();

}  // namespace serin::registry
