// mlflow_login.h: where a tracking server of MLflow is, and how it is asked, by the variables that MLflow's own clients read.
//
//   MLFLOW_TRACKING_URI                                   http(s)://HOST[:PORT][/PATH]
//   MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD    both, or
//   MLFLOW_TRACKING_TOKEN                                 a bearer token
//
// They are read anew for each request. They go to that server only, also not after a redirect.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/registry/http_files.h"

namespace serin::registry {

/// Without '/' at the end of its path. kInvalidArgument: it is not set, or no such URL; the message does not repeat it, for it may have a password.
Result<net::Url> mlflow_url();

class MlflowLogin : public Access {
 public:
  /// kInvalidArgument: half a login, or a token that no header can carry.
  Status authorise(const net::Origin& origin, net::Outgoing& request) const override;
  Error refusal(const net::Url& url, const net::Response& answer, const std::string& said) const override;
};

}  // namespace serin::registry
