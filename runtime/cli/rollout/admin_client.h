// admin_client.h: calls the router's admin API for `serin rollout`. Functions throw a Failure, which ends the subcommand.
#pragma once

#include <memory>
#include <string>

#include "runtime/cli/commands.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/net/session.h"

namespace serin::cli {

/// Address of the router's admin API, and the caller's credentials.
struct AdminFlags {
  std::string address = "127.0.0.1:8081";  ///< or https://HOST:PORT
  std::string token_file;                  ///< file with the bearer token; empty: SERIN_TOKEN of the environment, or none
  TlsFlags tls;
};

/// --admin, --token-file, and add_tls_flags.
void add_admin_flags(CLI::App& command, AdminFlags& flags);

/// The message to print and the exit code.
struct Failure {
  std::string message;
  int exit_code = kUsage;
};
[[noreturn]] void refuse(std::string message);

class AdminClient {
 public:
  /// The token comes from the file, else from $SERIN_TOKEN. It never comes from the command line, which every user of the machine can read.
  explicit AdminClient(const AdminFlags& flags);

  /// These return the body of a 2xx answer.
  std::string get(const std::string& target) const { return call("GET", target, ""); }
  std::string put(const std::string& target, const std::string& body) const { return call("PUT", target, body); }
  std::string post(const std::string& target, const std::string& body) const { return call("POST", target, body); }

 private:
  std::string call(const std::string& method, const std::string& target, const std::string& body) const;
  Result<net::Response> send(const net::Origin& origin, const std::string& method, const std::string& target,
                             const std::string& body) const;

  std::string address_, token_;
  net::Origin origin_;
  std::shared_ptr<const net::TlsContext> tls_;  // null: without TLS
};

}  // namespace serin::cli
