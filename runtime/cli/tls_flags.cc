#include "runtime/cli/tls_flags.h"

#include <CLI/CLI.hpp>

namespace serin::cli {

Result<net::TlsClientOptions> client_options_of(const TlsFlags& flags) {
  if (flags.cert.empty() != flags.key.empty()) return Error{Code::kInvalidArgument, "--cert and --key must be given together"};
  return net::TlsClientOptions{.ca = flags.ca, .certificate = flags.cert, .key = flags.key};
}

Result<std::shared_ptr<const net::TlsContext>> client_tls(const TlsFlags& flags, const net::Origin& origin) {
  if (!origin.secure) return nullptr;
  SERIN_TRY(const net::TlsClientOptions options, client_options_of(flags));
  auto made = net::TlsContext::for_client(options);
  if (!made) return made.error().in("TLS");
  return std::shared_ptr<const net::TlsContext>(*std::move(made));
}

void add_tls_flags(CLI::App& command, TlsFlags& flags) {
  command.add_option("--ca", flags.ca, "https: file with the authorities that may sign for the server; default: the system's")
      ->envname("SERIN_CA");
  command.add_option("--cert", flags.cert, "https: file with a client certificate")->envname("SERIN_CERT");
  command.add_option("--key", flags.key, "https: file with the key of the client certificate")->envname("SERIN_KEY");
}

}  // namespace serin::cli
