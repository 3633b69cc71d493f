// registry_login.h: how a container registry is asked: logins of Docker's configuration, tokens, what its refusals mean.
//
// Formats: OCI Distribution Specification 1.1 ("Error Codes"), "Token Authentication Specification" of Distribution, `auths` of Docker's
// config.json (in DOCKER_CONFIG or ~/.docker). Helpers (credsStore, credHelpers) and identity tokens are not used.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"

namespace serin::registry {

/// For one thread at a time.
class RegistryLogin : public Access {
 public:
  RegistryLogin(const net::Origin& origin, std::shared_ptr<const net::TlsContext> tls);

  Status authorise(const net::Origin& origin, net::Outgoing& request) const override;
  /// Answers a challenge: Basic with the login, or Bearer with a token of the server that the challenge names; that gets the login. The file is
  /// read anew. Errors: kPermissionDenied: a file that others can read, a token server without TLS, or one that refuses the login.
  Result<bool> renew(const net::Response& answer) const override;
  Error refusal(const net::Url& url, const net::Response& answer, const std::string& said) const override;

 private:
  Result<std::string> token(std::string_view challenge, const std::string& basic, const std::string& source) const;

  const std::string host_;
  const bool secure_;
  const std::shared_ptr<const net::TlsContext> tls_;
  mutable std::string header_;  // Authorization, since the last challenge
};

}  // namespace serin::registry
