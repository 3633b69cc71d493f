// tls_flags.h: makes a TLS context from --ca, --cert and --key of commands that call a server.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/cli/commands.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::cli {

/// Returns null if `origin` is not secure; the flags, which may come from the environment, are then ignored.
Result<std::shared_ptr<const net::TlsContext>> client_tls(const TlsFlags& flags, const net::Origin& origin);

}  // namespace serin::cli
