// stream.h: one request and its answer while their bytes come and go, the same for HTTP/1.1 and HTTP/2, on both sides of a proxy.
//
//   a client --bytes--> ServerStream --calls--> RequestHandler      who serves writes the answer to the ServerStream
//   AnswerHandler <--calls-- ClientStream <--bytes-- a server       who asks writes the request to the ClientStream
//
// Bodies go straight from the socket into memory of the handler (body_room, body_filled) and from its memory to the socket (write): nothing is
// copied in between that comes in large pieces, and a handler that offers no room, or a peer that takes no bytes, stops the other side. All calls are
// made on the io thread that owns the connection, never out of a call into the stream, but for what is said there. body_room() and body_filled()
// must not call into any stream.
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
#include "runtime/net/message/head_parser.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// What comes in: the body of a request or of an answer.
class BodyHandler {
 public:
  /// Room for what comes next, `left` bytes of which are known to follow. Empty: not now; call read_more() once there is.
  virtual std::span<char> body_room(std::optional<uint64_t> left) = 0;
  virtual void body_filled(size_t bytes) = 0;
  /// After a head or some of the body has come: nothing more is at hand. `end`: the message is complete.
  virtual void on_progress(bool end) = 0;
  /// The other direction moves again after write() took less than it was given.
  virtual void on_writable() = 0;

 protected:
  ~BodyHandler() = default;
};

/// Serves the requests of one connection (of one stream in HTTP/2), one after the other.
class RequestHandler : public BodyHandler {
 public:
  virtual ~RequestHandler() = default;
  /// The head is the handler's to change; it stays until the handler has returned from what ended the answer.
  virtual void on_request(Head& head) = 0;
  /// The client is gone, or sent something after which nobody would understand it: no further call for this request, none on the stream.
  virtual void on_gone() = 0;
  /// The server ends once all requests have: one that would only go on waiting for what its client may say next can end now.
  virtual void on_drain() {}
};

struct AnswerHead {
  int status = 200;
  const Headers& headers;          ///< those of the connection are left out, whatever it holds
  std::optional<uint64_t> length;  ///< of the body; absent: it ends with last. 0: nothing follows, no trailers either
  bool close = false;              ///< end the connection after this answer; HTTP/1.1 only, in HTTP/2 one request does not spoil the next
};

/// Towards a client. Outlives its handler's request unless on_gone() is called.
class ServerStream {
 public:
  virtual const std::string& peer() const = 0;  ///< "127.0.0.1:4711"
  /// What the client has shown and was found good; null: nothing.
  virtual std::shared_ptr<const PeerCertificate> certificate() const { return nullptr; }
  virtual void begin_answer(const AnswerHead& head) = 0;
  /// How many bytes were taken. Give the others again from on_writable(). `last`: they are the last; the answer ends once all are taken.
  virtual size_t write(std::string_view bytes, bool last) = 0;
  /// Before the write() that is given the last byte: these follow it. Dropped where the protocol has no good place for them (HTTP/1.1).
  virtual void set_trailers(const Headers& trailers) = 0;
  virtual void read_more() = 0;
  /// Ends an answer that cannot be completed so that the client notices. No call of the handler follows.
  virtual void abort() = 0;

 protected:
  ~ServerStream() = default;
};

/// Makes the handler of a connection (of a stream in HTTP/2); on its io thread.
using HandlerFactory = std::function<std::shared_ptr<RequestHandler>(ServerStream&)>;

struct Failure {
  Code code = Code::kUnavailable;  ///< as Client::send()
  std::string_view what;           ///< without the server's address; valid during the call
  bool stale = false;  ///< the server did not see the request, because it had closed a kept connection: ask again on a fresh one
};

/// Who has asked a server.
class AnswerHandler : public BodyHandler {
 public:
  virtual void on_answer(Head& head) = 0;
  /// Before on_progress(true), where there are any (HTTP/2 only). They are the handler's to change or take.
  virtual void on_trailers(Headers&) {}
  /// Instead of on_progress(true). No further call. May be called out of begin().
  virtual void on_failure(const Failure& failure) = 0;

 protected:
  ~AnswerHandler() = default;
};

struct RequestHead {
  std::string_view method, target;
  const Headers& headers;                    ///< host, content-length and those of the connection are left out, whatever it holds
  std::optional<uint64_t> length;            ///< of the body; absent: it ends with last
  std::string_view extra_name, extra_value;  ///< one more header of our own, where there is a name
};

/// One request under way to a server; belongs to its connection. Void after on_progress(true), on_failure() and cancel().
class ClientStream {
 public:
  virtual void begin_request(const RequestHead& head) = 0;
  /// As ServerStream::write().
  virtual size_t write(std::string_view bytes, bool last) = 0;
  virtual void read_more() = 0;
  /// For the whole answer, in place of what open() was given.
  virtual void set_deadline(std::chrono::steady_clock::time_point deadline) = 0;
  /// Nobody wants the answer any more. No call of the handler follows.
  virtual void cancel() = 0;

 protected:
  ~ClientStream() = default;
};

}  // namespace serin::net
