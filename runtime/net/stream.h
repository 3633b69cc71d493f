// stream.h: the interfaces of one request and its answer as streams of bytes, for HTTP/1.1 and HTTP/2 and both sides of a proxy.
//
//   a client --bytes--> ServerStream --calls--> RequestHandler      the handler writes the answer to the ServerStream
//   AnswerHandler <--calls-- ClientStream <--bytes-- a server       the caller writes the request to the ClientStream
//
// Bodies go directly from the socket into the handler's memory (body_room, body_filled) and from its memory to the socket (write). Large
// pieces are not copied in between. A handler that offers no room, or a peer that takes no bytes, stops the other side.
//
// All calls are made on the io thread that owns the connection, and not from within a call into the stream, unless stated otherwise.
// body_room() and body_filled() must not call into any stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// The incoming side: the body of a request or of an answer.
class BodyHandler {
 public:
  /// Room for the next bytes; `left` is the number of bytes still to come, if known. Empty: none now; call read_more() later.
  virtual std::span<char> body_room(std::optional<uint64_t> left) = 0;
  virtual void body_filled(size_t bytes) = 0;
  /// After a head or a part of the body has come: no more bytes are available now. `end`: the message is complete.
  virtual void on_progress(bool end) = 0;
  /// The other direction accepts bytes again after write() took less than it was given.
  virtual void on_writable() = 0;

 protected:
  ~BodyHandler() = default;
};

/// Serves the requests of one connection (of one stream in HTTP/2), one after the other.
class RequestHandler : public BodyHandler {
 public:
  virtual ~RequestHandler() = default;
  /// The handler may change the head. It stays valid until the handler returns from the call that ended the answer.
  virtual void on_request(Head& head) = 0;
  /// The client has left, or sent bytes that make the connection unusable. No further call for this request follows, and none may be made
  /// on the stream.
  virtual void on_gone() = 0;
  /// The server ends after all requests: a request that only waits for its client can end now.
  virtual void on_drain() {}
};

struct AnswerHead {
  int status = 200;
  const Headers& headers;          ///< headers of the connection in it are left out
  std::optional<uint64_t> length;  ///< of the body; absent: the body ends with `last`. 0: nothing follows, not even trailers
  bool close = false;              ///< ends the connection after this answer; HTTP/1.1 only, since requests of HTTP/2 are independent
};

/// The stream to a client. It outlives its handler's request unless on_gone() is called.
class ServerStream {
 public:
  virtual Loop& loop() = 0;                     ///< the io thread that owns the connection
  virtual const std::string& peer() const = 0;  ///< "127.0.0.1:4711"
  /// The verified certificate of the client; null: none.
  virtual std::shared_ptr<const PeerCertificate> certificate() const { return nullptr; }
  virtual void begin_answer(const AnswerHead& head) = 0;
  /// Returns the number of bytes taken. Pass the others again from on_writable(). `last`: they are the last; the answer ends once all are
  /// taken.
  virtual size_t write(std::string_view bytes, bool last) = 0;
  /// Call it before the write() with the last byte; the trailers follow that byte. HTTP/1.1 drops them, because it has no good place for
  /// them.
  virtual void set_trailers(const Headers& trailers) = 0;
  virtual void read_more() = 0;
  /// Ends an answer that cannot be completed in a way that the client notices. No call of the handler follows.
  virtual void abort() = 0;

 protected:
  ~ServerStream() = default;
};

/// Makes the handler of a connection (of a stream in HTTP/2); called on its io thread.
using HandlerFactory = std::function<std::shared_ptr<RequestHandler>(ServerStream&)>;

struct Failure {
  Code code = Code::kUnavailable;  ///< as in Client::send()
  std::string_view what;           ///< without the server's address; valid during the call
  bool stale = false;              ///< the server did not see the request, because it had closed a kept connection: retry on a new one
  bool alone = false;              ///< the server ended this request only (HTTP/2): its connection lives on
};

/// Receives the answer to a request.
class AnswerHandler : public BodyHandler {
 public:
  virtual void on_answer(Head& head) = 0;
  /// Called before on_progress(true) if there are trailers (HTTP/2 only). The handler may change or take them.
  virtual void on_trailers(Headers&) {}
  /// Called before on_progress(true) if more bytes came than the answer announced (HTTP/1.1; HTTP/2 fails). They are dropped.
  virtual void on_excess() {}
  /// Called instead of on_progress(true). No further call follows. May be called from within begin().
  virtual void on_failure(const Failure& failure) = 0;

 protected:
  ~AnswerHandler() = default;
};

struct RequestHead {
  std::string_view method, target;
  const Headers& headers;                    ///< host, content-length and headers of the connection in it are left out
  std::optional<uint64_t> length;            ///< of the body; absent: the body ends with `last`
  std::string_view extra_name, extra_value;  ///< one additional header, if it has a name
};

/// A request in progress to a server; belongs to its connection. Invalid after on_progress(true), on_failure() and cancel().
class ClientStream {
 public:
  virtual void begin_request(const RequestHead& head) = 0;
  /// Like ServerStream::write().
  virtual size_t write(std::string_view bytes, bool last) = 0;
  virtual void read_more() = 0;
  /// For the whole answer; replaces the deadline passed to open().
  virtual void set_deadline(std::chrono::steady_clock::time_point deadline) = 0;
  /// Drops the answer. No call of the handler follows.
  virtual void cancel() = 0;

 protected:
  ~ClientStream() = default;
};

}  // namespace serin::net
