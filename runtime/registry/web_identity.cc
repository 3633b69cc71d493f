#include "runtime/registry/web_identity.h"

#include <fmt/format.h>

#include <ctime>
#include <iomanip>
#include <sstream>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/net/http.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/xml_texts.h"

namespace serin::registry {
namespace {

using std::chrono::system_clock;

constexpr size_t kMostToken = 1 << 16;
constexpr std::chrono::seconds kExchangeTime{30};
constexpr std::chrono::minutes kEarlier{5}, kUnknownEnd{10};

std::string endpoint_of(const std::string& region) {
  for (const char* name : {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"})
    if (std::string endpoint = aws_variable(name); !endpoint.empty()) return endpoint;
  return fmt::format("https://sts.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
}

/// "2026-11-29T13:34:41Z"
system_clock::time_point end_of(const std::string& text) {
  std::tm time{};
  std::istringstream stream(text);
  stream >> std::get_time(&time, "%Y-%m-%dT%H:%M:%S");
  return stream.fail() ? system_clock::now() + kUnknownEnd : system_clock::from_time_t(::timegm(&time));
}

}  // namespace

bool WebIdentity::is_configured() {
  return aws_variable("AWS_ACCESS_KEY_ID").empty() && !aws_variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty();
}

Result<AwsCredentials> WebIdentity::credentials() {
  if (!known_.key || system_clock::now() + kEarlier > until_) {
    SERIN_TRY(known_, exchange());
  }
  return known_;
}

Result<AwsCredentials> WebIdentity::exchange() {
  const std::string role = aws_variable("AWS_ROLE_ARN"), named = aws_variable("AWS_ROLE_SESSION_NAME");
  if (role.empty()) return invalid("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not");
  SERIN_TRY(const std::string token, read_file(aws_variable("AWS_WEB_IDENTITY_TOKEN_FILE"), kMostToken));
  const auto url = net::parse_url(endpoint_of(region_));
  if (!url || url->path.find('?') != std::string::npos)
    return invalid("AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL is not http(s)://HOST[:PORT][/PATH]");
  net::Outgoing request{.method = "POST", .target = url->path, .headers = {}, .body = nullptr};
  request.headers.set("Content-Type", "application/x-www-form-urlencoded");
  request.body = std::make_shared<const std::string>(fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}", net::escaped(role),
      net::escaped(named.empty() ? "serin" : named), net::escaped(token.substr(0, token.find_last_not_of(" \r\n") + 1))));
  const std::string said = fmt::format("{}: keys of the role {}", text_of(*url), role);
  const auto answer = net::fetch(url->origin, request, kExchangeTime, tls_);
  if (!answer) return answer.error().in(said);
  AwsKey key{xml_text(answer->body, "AccessKeyId"), xml_text(answer->body, "SecretAccessKey"), xml_text(answer->body, "SessionToken")};
  if (answer->status == 200 && !key.id.empty() && !key.secret.empty()) {
    until_ = end_of(xml_text(answer->body, "Expiration"));
    return AwsCredentials{std::move(key), fmt::format("the role {} (AWS_WEB_IDENTITY_TOKEN_FILE)", role)};
  }
  const bool passes = answer->status >= 500 || answer->status == 429;
  return Error{passes ? Code::kUnavailable : Code::kPermissionDenied,
               fmt::format("{}: {} {} ({})", said, answer->status, quotable(xml_text(answer->body, "Code")),
                           quotable(xml_text(answer->body, "Message")))};
}

}  // namespace serin::registry
