// config_tls.h: Reads the `tls:` sections of router.yaml, for listeners and for clients.
//
// The files are read at once, so that the error for a bad file names a line.
//
//   tls: {cert: tls.crt, key: tls.key, client_ca: ca.crt, client_certificates: required, min_version: "1.3"}
//   tls: {ca: ca.crt, cert: client.crt, key: client.key, server_name: models.internal, insecure_skip_verify: false}
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/net/tls.h"

namespace serin::router {

struct RouterConfig;

/// `requires_certificates`: clients without a certificate are rejected.
Result<std::shared_ptr<net::TlsContext>> read_listener_tls(const config::Node& node, bool* requires_certificates = nullptr);
/// Reads the key `tls` of `owner`. Null if it is absent and nothing is `secure`; an error if it is present and nothing is `secure`.
Result<std::shared_ptr<net::TlsContext>> read_client_tls(const config::Node& owner, bool secure);

/// Every context of the configuration, for a net::TlsWatch.
std::vector<std::shared_ptr<net::TlsContext>> tls_contexts(const RouterConfig& config);

}  // namespace serin::router
