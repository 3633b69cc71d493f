#include "runtime/cli/rollout/admin_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdlib>
#include <string_view>

#include "runtime/cli/tls_flags.h"
#include "runtime/cli/token_file.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kTimeout{30};

std::string actor() {
  const char* user = std::getenv("USER");
  return user != nullptr && *user != '\0' ? user : fmt::format("uid {}", ::getuid());
}

/// Empty: none.
std::string read_token(const std::string& file) {
  const char* given = std::getenv("SERIN_TOKEN");
  auto token = file.empty() ? token_in(given != nullptr ? given : "", "SERIN_TOKEN") : read_token_file(file);
  if (!token) refuse(token.error().message);
  return *std::move(token);
}

std::string error_text(const net::Response& response) {
  boost::system::error_code failure;
  const json::value body = json::parse(response.body, failure);
  const json::value* error = failure || !body.is_object() ? nullptr : body.as_object().if_contains("error");
  if (error != nullptr && error->is_string()) return std::string(std::string_view(error->as_string()));
  return fmt::format("the router answered {} {}", response.status, net::reason_phrase(response.status));
}

}  // namespace

void refuse(std::string message) { throw Failure{std::move(message)}; }

AdminClient::AdminClient(const AdminFlags& flags) : address_(flags.address), token_(read_token(flags.token_file)) {
  const auto url = net::parse_url(address_.find("://") == std::string::npos ? "http://" + address_ : address_);
  if (!url || url->path != "/") refuse(fmt::format("--admin {}: must be HOST:PORT, or https://HOST:PORT", address_));
  origin_ = url->origin;
  auto tls = client_tls(flags.tls, origin_);
  if (!tls) refuse(fmt::format("--admin {}: {}", address_, tls.error().message));
  tls_ = *std::move(tls);
}

std::string AdminClient::call(const std::string& method, const std::string& target, const std::string& body) const {
  auto response = send(origin_, method, target, body);
  if (response && response->status == 307)  // several routers share the rollouts, and another one leads
    if (const auto leader = net::parse_url(response->headers.get("location"))) {
      if (leader->origin.secure != origin_.secure)  // a token that was told by TLS is not told in the clear
        throw Failure{fmt::format("the router at {} reports that {} is the leader: send the command there", address_,
                                  response->headers.get("location")),
                      kUnreachable};
      response = send(leader->origin, method, target, body);
    }
  if (!response) throw Failure{fmt::format("router at {}: {}", address_, response.error().message), kUnreachable};
  if (response->status / 100 == 2) return response->body;
  throw Failure{error_text(*response), kNo};
}

Result<net::Response> AdminClient::send(const net::Origin& origin, const std::string& method, const std::string& target,
                                        const std::string& body) const {
  net::Outgoing request{.method = method, .target = target};
  request.headers.set("x-serin-actor", actor());
  if (!token_.empty()) request.headers.set("Authorization", "Bearer " + token_);
  if (!body.empty()) {
    request.headers.set("Content-Type", "application/yaml");
    request.body = std::make_shared<const std::string>(body);
  }
  return net::fetch(origin, request, kTimeout, tls_);
}

void add_admin_flags(CLI::App& command, AdminFlags& flags) {
  command.add_option("--admin", flags.address, "HOST:PORT of the router's admin API, or https://HOST:PORT")->capture_default_str();
  command.add_option("--token-file", flags.token_file, "file with the token for the admin API; default: $SERIN_TOKEN");
  add_tls_flags(command, flags.tls);
}

}  // namespace serin::cli
