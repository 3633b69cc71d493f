// config_tls.h: `tls:` in router.yaml, of those who listen and of those who connect. Files are read there and then, so that a mistake in them has a line.
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

/// `requires_certificates`: whoever has none is not let in.
Result<std::shared_ptr<net::TlsContext>> read_listener_tls(const config::Node& node, bool* requires_certificates = nullptr);
/// Of the key `tls` of `owner`; null where there is none and nothing is `secure`, an error where there is one all the same.
Result<std::shared_ptr<net::TlsContext>> read_client_tls(const config::Node& owner, bool secure);

/// All of them, for a net::TlsWatch.
std::vector<std::shared_ptr<net::TlsContext>> tls_contexts(const RouterConfig& config);

}  // namespace serin::router
