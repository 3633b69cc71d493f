#include "runtime/registry/registry_login.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>

#include "runtime/base/base64.h"
#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::registry {
namespace {

namespace json = boost::json;

constexpr size_t kMostConfig = 1 << 20;
constexpr std::chrono::seconds kTokenTime{30};
constexpr std::string_view kManifests =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, "
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json";

std::string config_path() {
  if (const char* folder = std::getenv("DOCKER_CONFIG"); folder && *folder) return std::string(folder) + "/config.json";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "") + "/.docker/config.json";
}

struct Login {
  std::string basic;   ///< base64 of "user:password"; empty: none
  std::string source;  ///< where it is from, or why there is none; never a secret
};

/// Docker writes the host alone, or with a scheme and a path of older versions.
bool is_of(std::string_view key, const std::string& host) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  return key.substr(0, key.find('/')) == host;
}

Result<Login> login_of(const std::string& host) {
  const std::string path = config_path();
  const auto text = read_secret_file(path, kMostConfig);
  if (!text && text.error().code == Code::kNotFound) return Login{"", path + " does not exist"};
  if (!text) return text.error();
  boost::system::error_code error;
  const json::value config = json::parse(*text, error);
  if (error || !config.is_object()) return Error{Code::kCorrupt, path + " is not a JSON object"};
  const json::value* const auths = json_at::find(config, "/auths");
  if (auths && auths->is_object()) {
    for (const auto& [key, entry] : auths->get_object()) {
      if (!is_of(key, host)) continue;
      std::string basic = json_at::text(entry, "/auth");
      const std::string user = json_at::text(entry, "/username");
      if (basic.empty() && !user.empty()) basic = encode_base64(fmt::format("{}:{}", user, json_at::text(entry, "/password")));
      if (!basic.empty()) return Login{std::move(basic), fmt::format("the login of {} in {}", host, path)};
    }
  }
  const json::value* const helpers = json_at::find(config, "/credHelpers");
  const bool has_helper = json_at::find(config, "/credsStore") || (helpers && helpers->is_object() && helpers->get_object().contains(host));
  return Login{"", fmt::format("{} has no `auth` of {}{}", path, host, has_helper ? ", and the helper that it names is not run" : "")};
}

/// Of a challenge: Bearer realm="https://auth.corp/token",service="registry.corp"
std::string parameter(std::string_view challenge, std::string_view name) {
  for (size_t at = challenge.find(name); at != std::string_view::npos; at = challenge.find(name, at + 1)) {
    const std::string_view rest = challenge.substr(at + name.size());
    const bool begins = at > 0 && (challenge[at - 1] == ' ' || challenge[at - 1] == ',');
    if (begins && rest.starts_with("=\"")) return std::string(rest.substr(2, rest.find('"', 2) - 2));
  }
  return {};
}

}  // namespace

RegistryLogin::RegistryLogin(const net::Origin& origin, std::shared_ptr<const net::TlsContext> tls)
    : host_(net::host_field(origin)), secure_(origin.secure), tls_(std::move(tls)) {}

Status RegistryLogin::authorise(const net::Origin& /*origin*/, net::Outgoing& request) const {
  if (request.target.find("/manifests/") != std::string::npos) request.headers.set("Accept", kManifests);
  if (!header_.empty()) request.headers.set("Authorization", header_);
  return {};
}

Result<bool> RegistryLogin::renew(const net::Response& answer) const {
  const std::string_view challenge = answer.headers.get("WWW-Authenticate");
  const std::string_view scheme = challenge.substr(0, challenge.find(' '));
  const bool is_basic = net::equal_ignoring_case(scheme, "Basic");
  if (!is_basic && !net::equal_ignoring_case(scheme, "Bearer")) return false;
  SERIN_TRY(const Login login, login_of(host_));
  if (is_basic && login.basic.empty()) return false;
  std::string header = "Basic " + login.basic;
  if (!is_basic) {
    SERIN_TRY(const std::string given, token(challenge, login.basic, login.source));
    header = "Bearer " + given;
  }
  const bool is_new = header != header_;
  header_ = std::move(header);
  return is_new;
}

Result<std::string> RegistryLogin::token(std::string_view challenge, const std::string& basic, const std::string& source) const {
  const std::string realm = parameter(challenge, "realm");
  const auto url = net::parse_url(realm);
  if (!url) return Error{Code::kCorrupt, fmt::format("{}: asks for a token of '{}', which is no URL", host_, quotable(realm))};
  if (secure_ && !url->origin.secure)
    return Error{Code::kPermissionDenied,
                 fmt::format("{}: asks for a token of {}, which would get the login without TLS", host_, quotable(realm))};
  net::Outgoing request;
  request.target = url->path;
  for (const char* name : {"service", "scope"})
    if (const std::string value = parameter(challenge, name); !value.empty())
      request.target += fmt::format("{}{}={}", request.target.find('?') == std::string::npos ? '?' : '&', name, net::escaped(value));
  if (!basic.empty()) request.headers.set("Authorization", "Basic " + basic);
  auto answer = net::fetch(url->origin, request, kTokenTime, tls_);
  if (!answer) return answer.error().in(fmt::format("token of {}", quotable(realm)));
  if (answer->status == 401 || answer->status == 403)
    return Error{Code::kPermissionDenied,
                 fmt::format("{}: {}: refuses a token for {}: {}", quotable(realm), answer->status, host_, source)};
  if (answer->status != 200) return status_error(answer->status, fmt::format("{}: {}", quotable(realm), answer->status));
  boost::system::error_code error;
  const json::value value = json::parse(answer->body, error);
  std::string given = error ? "" : json_at::text(value, "/token");
  if (given.empty() && !error) given = json_at::text(value, "/access_token");
  if (given.empty()) return Error{Code::kCorrupt, quotable(realm) + ": answers no token"};
  return given;
}

Error RegistryLogin::refusal(const net::Url& /*url*/, const net::Response& answer, const std::string& said) const {
  boost::system::error_code error;
  const json::value body = json::parse(answer.body, error);
  const std::string code = error ? "" : quotable(json_at::text(body, "/errors/0/code"));
  std::string now = code.empty() ? said : fmt::format("{}: {} ({})", said, code, quotable(json_at::text(body, "/errors/0/message")));
  if (answer.status == 401 || answer.status == 403) {
    const auto login = login_of(host_);
    return {Code::kPermissionDenied, fmt::format("{}: log in, or allow it: {}", now, login ? login->source : login.error().message)};
  }
  if (answer.status == 404) return {Code::kNotFound, now + ": there is no such model, tag or file"};
  if (!code.empty()) return {status_error(answer.status, "").code, std::move(now)};
  return status_error(answer.status, now + (answer.status < 500 ? ": is that a container registry?" : ""));
}

}  // namespace serin::registry
