// record.h: Makes a recorded request of one that was answered, without what must not be kept.
#pragma once

#include <optional>
#include <string_view>

#include "router/config/config.h"
#include "router/recording/recorded_request.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/protocol/json/json_pointer.h"

namespace serin::router {

/// Keeps the path without its query, the headers that say what the body is, and those that the configuration names: no credentials, no
/// cookies, no addresses. Nothing: the body cannot be redacted, because it is not JSON, is compressed, or has tensors in binary form.
std::optional<RecordedRequest> record(const RecordingConfig& config, const net::Head& request, std::string_view body,
                                      protocol::JsonPointerReader& json);

}  // namespace serin::router
