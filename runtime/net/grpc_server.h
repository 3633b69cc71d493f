// grpc_server.h: calls of gRPC for who serves them: messages in, messages out, a status at the end.
//
//   class Echo : public GrpcMethod {
//     void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) override {
//       call->send(grpc_framed(message));
//       call->finish(GrpcStatus::kOk);
//     }
//   };
//   start_grpc_server(loops, options, [&](std::string_view path) { return path == "/echo.Echo/Say" ? &echo : nullptr; });
//
// One call is one stream of HTTP/2. Everything runs on the io thread that owns its connection, but for what holds it up (read_aside). A message that is
// compressed (gzip, deflate, zstd) is inflated within Limits::body_bytes, beside the io threads where more than kMostOnIo come out; answers are sent as they are.
// Source: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/unique_function.h"
#include "runtime/net/grpc.h"
#include "runtime/net/server.h"

namespace serin::net {

/// One call under way. Shared with whoever will answer it; what comes after its end is dropped.
class GrpcCall {
 public:
  virtual const Headers& headers() const = 0;
  /// As grpc-timeout says, or time_point::max(). The call ends by itself then, as when its client is gone: on_gone is told.
  virtual std::chrono::steady_clock::time_point deadline() const = 0;

  /// Of the answer's head; before the first message.
  virtual void set_header(std::string_view name, std::string_view value) = 0;
  /// As begin_grpc_message(), in memory that was used before.
  virtual std::string begin_message(size_t expected_bytes = 0) = 0;
  /// A message with its prefix (grpc_framed, seal_grpc_message). What the client has no room for waits here; a client that sends messages is
  /// not read from meanwhile, and one that takes nothing loses the call.
  virtual void send(std::string framed) = 0;
  virtual void finish(GrpcStatus status, std::string_view message = {}) = 0;
  bool ended() const { return ended_; }

  /// No further message is taken from the client until resume(); those that came already are still given.
  virtual void pause() = 0;
  virtual void resume() = 0;

  /// From on_message(), once, or from such a `then`: its message stays valid while `read` reads it beside the io threads (net::aside), and `then` follows on this
  /// one. The next message comes after it. Of a call that has ended before it was read nothing is: `then` finds ended().
  virtual void read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) = 0;
  /// The same of what is to be sent, any number of them at once: what nobody waits for any more is not written.
  virtual void write_aside(UniqueFunction<void()> write, UniqueFunction<void()> then) = 0;

  /// What who serves the call keeps for it; goes with the call.
  std::shared_ptr<void> state;
  /// Nobody waits any more: hung up, or the deadline has passed.
  UniqueFunction<void()> on_gone;
  /// The server ends once all calls have: one that only waits, for a message or for news, is to be finished. Without it one of many messages is, at once.
  UniqueFunction<void()> on_drain;

 protected:
  ~GrpcCall() = default;
  bool ended_ = false;
};

/// What serves the calls of one method. One object for all of them.
class GrpcMethod {
 public:
  virtual ~GrpcMethod() = default;
  /// Whether a client may send any number of messages; else it is exactly one, and more or fewer are refused.
  virtual bool many_messages() const { return false; }
  /// Whether answers go out one by one, before the call ends.
  virtual bool many_answers() const { return many_messages(); }
  /// The message is valid during the call, and as GrpcCall::read_aside() says.
  virtual void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) = 0;
  /// There is no memory for one of many messages, of which this is the beginning: whether the call goes on with the next one; else it ends.
  virtual bool on_no_memory(const std::shared_ptr<GrpcCall>& call, std::string_view beginning) {
    static_cast<void>(call), static_cast<void>(beginning);
    return false;
  }
  /// The client has sent all of many messages.
  virtual void on_half_close(const std::shared_ptr<GrpcCall>&) {}
};

/// The method of a path "/package.Service/Method"; null: UNIMPLEMENTED.
using GrpcMethods = std::function<GrpcMethod*(std::string_view path)>;

struct GrpcRefusal {
  GrpcStatus status;
  std::string message;
};
/// Asked before a call is taken: why it is not, where it is not. `known`: the path names a method.
using GrpcGate = std::function<std::optional<GrpcRefusal>(std::string_view path, bool known, const Headers& headers,
                                                          const PeerCertificate* certificate)>;

/// A server that speaks gRPC only: other requests are answered 415. Errors as Server::start().
Result<std::unique_ptr<Server>> start_grpc_server(Loops& loops, ServerOptions options, GrpcMethods methods, GrpcGate gate = {});

/// Room for a prefix at the start of a message that will be appended; seal_grpc_message() writes it. In `memory`, whose content goes.
std::string begin_grpc_message(size_t expected_bytes = 0, std::string memory = {});
void seal_grpc_message(std::string& framed);
std::string grpc_framed(std::string_view message);

}  // namespace serin::net
