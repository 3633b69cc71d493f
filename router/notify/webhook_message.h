// webhook_message.h: Builds and signs the messages to webhooks. Pure except that webhook_request() reads the key file.
//
// Events are CloudEvents 1.0 (structured JSON). Signatures are those of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256
// over "<webhook-id>.<webhook-timestamp>.<body>", `webhook-signature: v1,<base64>`. During a key change several keys sign the same message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/rollout.h"
#include "router/store/store.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// The value of webhook-signature.
std::string signature(const std::vector<std::string>& keys, std::string_view id, int64_t unix_seconds, std::string_view body);

/// The event for an entry of the audit log.
std::string event_json(const store::HistoryEntry& entry);
/// The question at a gate, with the fields that Flagger's receivers expect.
std::string question_json(std::string_view type, const rollout::State& state);
/// A POST, signed if `secret` names a file.
Result<net::Outgoing> webhook_request(std::string_view target, std::string_view content_type, std::string_view id,
                                      const std::string& secret, std::string body);

}  // namespace serin::router
