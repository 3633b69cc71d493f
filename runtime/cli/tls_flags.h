// tls_flags.h: --ca, --cert and --key of commands that ask a server.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/cli/commands.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::cli {

/// Null where `origin` is not secure; then the flags, which may come from the environment, say nothing.
Result<std::shared_ptr<const net::TlsContext>> client_tls(const TlsFlags& flags, const net::Origin& origin);

}  // namespace serin::cli
