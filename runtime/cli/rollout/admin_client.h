// admin_client.h: calls the router's admin API for `serin rollout`. Functions throw a Failure, which ends the subcommand.
#pragma once

#include <memory>
#include <string>

#include "runtime/cli/commands.h"
#include "runtime/net/client.h"

namespace serin::cli {

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
