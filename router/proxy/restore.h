// restore.h: A recorded request as it came, and its meaning.
#pragma once

#include <string_view>

#include "router/proxy/rewrite.h"
#include "router/recording/recorded_request.h"
#include "runtime/net/message/head_parser.h"

namespace serin::router {

/// The target has views of the head and of `service`, which is that of a gRPC call. False: the path is of no use any more.
bool restore(const RecordedRequest& request, std::string_view service, net::Head& head, Target& target);

}  // namespace serin::router
