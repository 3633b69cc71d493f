// sigv4.h: AWS Signature Version 4 of an HTTP request, as its header Authorization.
//
//   request.headers.set("x-amz-date", time);
//   request.headers.set("Authorization", authorization(request, "models.s3.eu-west-1.amazonaws.com", payload, key, {time, "eu-west-1"}));
//
// Source: "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)" of the Amazon S3 API Reference. HMAC-SHA256 is
// OpenSSL's. The path is signed as it stands in the target, which is S3's rule; other services of AWS encode it once more.
#pragma once

#include <string>
#include <string_view>

#include "runtime/net/http.h"

namespace serin::registry {

struct AwsKey {
  std::string id, secret;
  std::string token;  ///< of temporary keys; else empty
};

struct SigningScope {
  std::string time;  ///< UTC, as in x-amz-date: 20130524T000000Z
  std::string region;
  std::string service = "s3";
};

/// Signs the method, the target, all headers, and the body by `payload`, its SHA-256 in hexadecimal digits. Parts of the target are
/// percent-encoded. `host` is the text of the header Host.
std::string authorization(const net::Outgoing& request, std::string_view host, std::string_view payload, const AwsKey& key,
                          const SigningScope& scope);

}  // namespace serin::registry
