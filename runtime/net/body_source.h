// body_source.h: the body of an answer that has no length: made piece by piece while it is sent, for as long as the client stays.
//
//   response.source = std::make_shared<Ticker>();      // instead of response.body; what became of it: ~Ticker
//
// Nothing is queued between the source and the socket: a client that reads slowly asks for fewer pieces, and what a piece says is decided when
// there is room for it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace serin::net {

/// Called on the io thread of the connection, and let go there once the client has gone or pull() has said the end.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Before anything else. `more` says that pull() has something after it had nothing; it may be called at any time and from any thread.
  virtual void begin(std::function<void()> more) = 0;
  /// The next piece; empty: none for now; nothing: the end.
  virtual std::optional<std::string> pull() = 0;
};

}  // namespace serin::net
