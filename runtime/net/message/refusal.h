// refusal.h: the reason why a message is refused: status and message for the client, and a label for the metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace serin::net {

struct Refusal {
  int status = 400;
  std::string_view reason;  ///< label of serin_http_bad_requests_total, for example "chunk_size"; always a literal
  std::string message;      ///< a sentence for the client
};

/// `from`: ServerOptions::body_bytes_from.
inline std::string too_large_message(std::string_view what, uint64_t most, std::string_view from) {
  std::string message = std::string(what) + " is larger than " + std::to_string(most) + " bytes";
  if (!from.empty()) message.append(": ").append(from);
  return message;
}
inline Refusal body_too_large(uint64_t most, std::string_view from) {
  return {413, "body_too_large", too_large_message("the body", most, from)};
}

}  // namespace serin::net
