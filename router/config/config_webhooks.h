// config_webhooks.h: Reads `webhooks:` of router.yaml.
#pragma once

#include "router/config/config.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Reads `webhooks:` into config.webhooks and into the gates of its services, which must have been read before.
Status read_webhooks(const config::Node& list, RouterConfig& config);

}  // namespace serin::router
