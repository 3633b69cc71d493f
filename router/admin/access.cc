// access.cc: maps a token, or else a certificate, to a caller, and limits the caller's request rate. Requests that take traffic off a
// canary are never refused for their rate. So a script that sends too many requests cannot keep the person with the same token from ending
// a rollout.

#include "router/admin/access.h"

#include <fmt/format.h>

#include <array>

namespace serin::router {
namespace {

constexpr std::array<std::string_view, 3> kRoles = {"viewer", "operator", "admin"};

/// "127.0.0.1:4711" -> "127.0.0.1"
std::string address_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

bool is_urgent(const net::Request& request) { return request.path.ends_with(":abort") || request.path.ends_with(":pause"); }

net::Response unauthorized(bool with_token, const net::PeerCertificate* certificate) {
  const std::string what =
      with_token ? "this token is not known here"
      : certificate != nullptr
          ? fmt::format("the client certificate ({}) is not registered here; send a token instead: Authorization: Bearer TOKEN",
                        fmt::join(certificate->names, ", "))
          : "a token is needed: Authorization: Bearer TOKEN";
  net::Response response = net::json_error(401, what);
  response.headers.set("WWW-Authenticate", with_token ? R"(Bearer realm="serin", error="invalid_token")" : R"(Bearer realm="serin")");
  return response;
}

net::Response too_many() {
  net::Response response = net::json_error(429, "too many requests of one caller; try again in a second");
  response.headers.set("Retry-After", "1");
  return response;
}

}  // namespace

std::string_view role_name(Role role) { return kRoles[static_cast<size_t>(role)]; }
std::span<const std::string_view> words_of(Role) { return kRoles; }

Access::Access(const AdminConfig& config, metrics::Registry& metrics) {
  if (config.rate > 0) limit_.emplace(config.rate);
  const auto counter = [&](const char* reason) {
    return metrics.counter("serin_admin_refused_total", "Requests that the admin API refused to their caller.", {{"reason", reason}});
  };
  unauthenticated_ = counter("unauthenticated");
  forbidden_ = counter("forbidden");
  too_often_ = counter("rate");
}

Result<std::unique_ptr<Access>> Access::open(const AdminConfig& config, metrics::Registry& metrics) {
  auto access = std::unique_ptr<Access>(new Access(config, metrics));
  if (!config.tokens.empty()) {
    SERIN_TRY(access->tokens_,
              net::Tokens::open(
                  {.path = config.tokens, .roles = {kRoles.begin(), kRoles.end()}, .stale_metric = "serin_admin_tokens_stale"}, metrics));
  }
  return access;
}

Admission Access::admit(const net::Request& request, std::string_view other) {
  const net::PeerCertificate* certificate = request.certificate.get();
  const bool named = certificate != nullptr && !certificate->names.empty();
  Caller caller{.name = named ? certificate->names.front() : request.peer, .role = Role::kAdmin};
  std::string payer = address_of(request.peer);  // who guesses pays by address, so that nobody is kept out in somebody else's name
  const auto token = other.empty() ? net::bearer_token(request.headers) : std::optional(other);
  bool known = true;
  if (tokens_) {
    const auto found = token ? tokens_->find(*token) : named ? tokens_->find(*certificate) : std::nullopt;
    known = found.has_value();
    caller = found ? Caller{found->name, static_cast<Role>(found->role)} : Caller{.name = payer};
    if (found) payer = "token " + found->name;
  }
  if (limit_ && !(known && is_urgent(request)) && !limit_->take(payer, RateLimit::Time::clock::now())) {
    too_often_->add();
    return {.caller = std::move(caller), .refusal = too_many()};
  }
  if (known) return {.caller = std::move(caller), .refusal = std::nullopt};
  unauthenticated_->add();
  return {.caller = std::move(caller), .refusal = unauthorized(token.has_value(), named ? certificate : nullptr)};
}

std::optional<net::Response> Access::require(Role role, const Caller& caller, std::string_view what) {
  if (caller.role >= role) return std::nullopt;
  forbidden_->add();
  return net::json_error(403, fmt::format("{} needs the role {}; '{}' has {}", what, role_name(role), caller.name, role_name(caller.role)));
}

}  // namespace serin::router
