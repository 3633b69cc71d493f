#include "runtime/cli/tls_flags.h"

namespace serin::cli {

Result<std::shared_ptr<const net::TlsContext>> client_tls(const TlsFlags& flags, const net::Origin& origin) {
  if (!origin.secure) return nullptr;
  if (flags.cert.empty() != flags.key.empty()) return Error{Code::kInvalidArgument, "--cert and --key belong together"};
  auto made = net::TlsContext::for_client({.ca = flags.ca, .certificate = flags.cert, .key = flags.key});
  if (!made) return made.error().in("TLS");
  return std::shared_ptr<const net::TlsContext>(*std::move(made));
}

}  // namespace serin::cli
