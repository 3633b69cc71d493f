// webhook_message.h: what is sent to webhooks, and its signature. Pure but for the file of keys.
//
// Events are CloudEvents 1.0 (structured JSON). Signatures are those of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over
// "<webhook-id>.<webhook-timestamp>.<body>", `webhook-signature: v1,<base64>`; several keys sign side by side while one replaces the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/rollout.h"
#include "router/store/store.h"
#include "runtime/base/result.h"
#include "runtime/net/client.h"

namespace serin::router {

/// Lines "whsec_<base64>" of a file that nobody but its owner may read; no message holds a key.
Result<std::vector<std::string>> read_signing_keys(const std::string& path);
/// The value of webhook-signature.
std::string signature(const std::vector<std::string>& keys, std::string_view id, int64_t unix_seconds, std::string_view body);

/// The event that an entry of the audit log is.
std::string event_json(const store::HistoryEntry& entry);
/// What is asked at a gate, with the fields that Flagger's receivers look at.
std::string question_json(std::string_view type, const rollout::State& state);
/// A POST, signed where `secret` names a file.
Result<net::Outgoing> webhook_request(std::string_view target, std::string_view content_type, std::string_view id,
                                      const std::string& secret, std::string body);

}  // namespace serin::router
