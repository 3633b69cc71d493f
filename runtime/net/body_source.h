// body_source.h: the body of an answer without a known length, made piece by piece while it is sent, until the client leaves.
//
//   response.source = std::make_shared<Ticker>();      // instead of response.body; its destructor runs at the end
//
// Nothing is queued between the source and the socket: a slow client pulls fewer pieces, and each piece is made when there is room for it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace serin::net {

/// It is called on the io thread of the connection. It is released there once the client has left or pull() has returned the end.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Called before anything else. `more` reports that pull() has a piece again after it had none; call it at any time, from any thread.
  virtual void begin(std::function<void()> more) = 0;
  /// The next piece; empty: none for now; nothing: the end.
  virtual std::optional<std::string> pull() = 0;
};

}  // namespace serin::net
