// refusal.h: why a message is not accepted, in the terms of its three readers: the client (status, message) and the metrics (reason).
#pragma once

#include <string>
#include <string_view>

namespace serin::net {

struct Refusal {
  int status = 400;
  std::string_view reason;  ///< a word for serin_http_bad_requests_total, e.g. "chunk_size"; always a literal
  std::string message;      ///< a sentence for the client
};

}  // namespace serin::net
