// web_identity.h: temporary keys of a role for the token that Kubernetes mounts into a pod (IAM roles for service accounts).
//
// Source: AssumeRoleWithWebIdentity of the AWS Security Token Service API Reference. The variables AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN and
// AWS_ROLE_SESSION_NAME are those that EKS sets; the endpoint is AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, or that of AWS in the region.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/aws_settings.h"

namespace serin::registry {

/// For one thread at a time.
class WebIdentity {
 public:
  /// Whether there is a token, and no key of its own (AWS_ACCESS_KEY_ID) that comes first.
  static bool is_configured();
  WebIdentity(std::string region, std::shared_ptr<const net::TlsContext> tls) : region_(std::move(region)), tls_(std::move(tls)) {}

  /// Kept until five minutes before they expire; then the file of the token, which is replaced meanwhile, is read anew. Errors: kInvalidArgument (no
  /// role), kPermissionDenied (the token is refused), those of the file and of the connection. They name the role and the endpoint.
  Result<AwsCredentials> credentials();

 private:
  Result<AwsCredentials> exchange();

  const std::string region_;
  const std::shared_ptr<const net::TlsContext> tls_;
  AwsCredentials known_;
  std::chrono::system_clock::time_point until_{};
};

}  // namespace serin::registry
