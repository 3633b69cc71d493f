#include "runtime/registry/mlflow_login.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>

#include "runtime/base/base64.h"
#include "runtime/base/json_at.h"

namespace serin::registry {
namespace {

std::string mlflow_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

struct MlflowCredentials {
  std::string header;  ///< Authorization; empty: none
  std::string source;  ///< for messages; never a secret
};

Result<MlflowCredentials> mlflow_credentials() {
  const std::string user = mlflow_variable("MLFLOW_TRACKING_USERNAME"), password = mlflow_variable("MLFLOW_TRACKING_PASSWORD"),
                    token = mlflow_variable("MLFLOW_TRACKING_TOKEN");
  if (user.empty() != password.empty()) return invalid("MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD belong together");
  if (!user.empty()) return MlflowCredentials{"Basic " + encode_base64(user + ":" + password), "the login of MLFLOW_TRACKING_USERNAME"};
  if (token.empty()) return MlflowCredentials{"", "neither MLFLOW_TRACKING_TOKEN nor MLFLOW_TRACKING_USERNAME is set"};
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; }))
    return invalid("MLFLOW_TRACKING_TOKEN has characters that a header cannot carry");
  return MlflowCredentials{"Bearer " + token, "the token of MLFLOW_TRACKING_TOKEN"};
}

}  // namespace

Result<net::Url> mlflow_url() {
  const std::string text = mlflow_variable("MLFLOW_TRACKING_URI");
  if (text.empty()) return invalid("MLFLOW_TRACKING_URI is not set: models:/ is the registry of the MLflow server that it names");
  auto url = net::parse_url(text);
  if (!url || url->path.find('?') != std::string::npos)
    return invalid(
        "MLFLOW_TRACKING_URI is not http(s)://HOST[:PORT][/PATH], without user, '?' and '#'; Serin reads from MLflow's server only");
  while (url->path.ends_with('/')) url->path.pop_back();
  return *url;
}

Status MlflowLogin::authorise(const net::Origin& /*origin*/, net::Outgoing& request) const {
  SERIN_TRY(const MlflowCredentials known, mlflow_credentials());
  if (!known.header.empty()) request.headers.set("Authorization", known.header);
  return {};
}

Error MlflowLogin::refusal(const net::Url& /*url*/, const net::Response& answer, const std::string& said) const {
  boost::system::error_code error;
  const boost::json::value body = boost::json::parse(answer.body, error);
  const std::string code = error ? "" : quotable(json_at::text(body, "/error_code"));
  const std::string now = code.empty() ? said : fmt::format("{}: {} ({})", said, code, quotable(json_at::text(body, "/message")));
  if (answer.status == 401 || answer.status == 403) {
    const auto known = mlflow_credentials();
    return {Code::kPermissionDenied, fmt::format("{}: {}", now, known ? known->source : known.error().message)};
  }
  if (code == "RESOURCE_DOES_NOT_EXIST" || (answer.status == 404 && !code.empty())) return {Code::kNotFound, now};
  if (code == "INVALID_PARAMETER_VALUE") return {Code::kInvalidArgument, now};
  Error plain = status_error(answer.status, now);
  if (code.empty() && answer.status < 500) plain.message = now + ": is that a tracking server of MLflow?";
  return plain;
}

}  // namespace serin::registry
