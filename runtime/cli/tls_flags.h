// tls_flags.h: makes a TLS context from --ca, --cert and --key of commands that call a server.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// PEM files for a server whose URL is https.
struct TlsFlags {
  std::string ca;         ///< authorities that may sign the server's certificate; empty: those that the system trusts
  std::string cert, key;  ///< client certificate shown to the server; empty: none
};

/// --ca, --cert and --key.
void add_tls_flags(CLI::App& command, TlsFlags& flags);

/// kInvalidArgument: a certificate without its key, or the other way round.
Result<net::TlsClientOptions> client_options_of(const TlsFlags& flags);
/// Returns null if `origin` is not secure; the flags, which may come from the environment, are then ignored.
Result<std::shared_ptr<const net::TlsContext>> client_tls(const TlsFlags& flags, const net::Origin& origin);

}  // namespace serin::cli
