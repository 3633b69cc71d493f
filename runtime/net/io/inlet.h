// inlet.h: the receiving half of an HTTP/1.1 connection: reads the socket and finds head and body, for server and client.
//
// For the .cc files of net only.
#pragma once

#include <cstdint>

#include "runtime/net/buffer.h"
#include "runtime/net/io/intake.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/message/body_reader.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/net/stream.h"

namespace serin::net {

class Inlet {
 public:
  Inlet(BufferPool& pool, HeadParser::Kind kind, const HeadLimits& head, const BodyLimits& body)
      : pool_(pool), parser_(kind, head), reader_(body) {}
  ~Inlet() { pool_.give(std::move(buffer_)); }

  enum class Step : uint8_t {
    kSome,     ///< some bytes have come
    kNothing,  ///< wait for the next event
    kPaused,   ///< the handler has no room
    kDone,     ///< the head, or the body, is complete
    kRefused,  ///< see refusal()
    kEnd,      ///< the other side has ended its direction
    kFailed    ///< the connection is broken: see error()
  };

  /// Records the events that epoll reported.
  void ready(uint32_t events) { intake_.ready(events); }

  /// Reads into the buffer, without parsing.
  Step read(Socket& socket);
  /// Reads the head of the next message. kSome means: call again.
  Step head(Socket& socket);
  /// Reads its body, after begin_body(). Moves as much as the handler has room for.
  Step body(Socket& socket, BodyHandler& handler);
  /// kSome: there is a body.
  Step begin_body(Framing framing, uint64_t length);
  /// Allows the next head. The last head stays until the next one is read.
  void end_message() { over_ = true; }
  bool ends_at_close() const { return reader_.ends_at_close(); }

  Head& parsed() { return parser_.head(); }
  const Refusal& refusal() const { return refused_by_parser_ ? parser_.refusal() : reader_.refusal(); }
  int error() const { return intake_.error(); }
  size_t buffered() const { return buffer_.size(); }
  bool readable() const { return intake_.readable(); }
  /// Bytes that were read but not parsed, and the state of the socket, for code that continues with another protocol.
  std::string_view ahead() const { return buffer_.data(); }
  const Intake& intake() const { return intake_; }
  void drop() { buffer_.clear(); }
  /// Called before waiting: returns an empty buffer to the pool.
  void rest() {
    if (buffer_.empty()) pool_.give(std::move(buffer_));
  }

 private:
  Step read_into(Socket& socket, std::span<char> room, size_t& bytes);

  BufferPool& pool_;
  Intake intake_;
  Buffer buffer_;
  HeadParser parser_;
  BodyReader reader_;
  bool refused_by_parser_ = false;
  bool over_ = false;  // the parser still has the head of a message that has ended
};

}  // namespace serin::net
