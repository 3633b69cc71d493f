// grpc_method.h: the interface between a server of gRPC calls (grpc_server.h) and the code that serves them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/unique_function.h"
#include "runtime/net/grpc.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// A call in progress. It is shared with the code that answers it; calls to it after its end are ignored.
class GrpcCall {
 public:
  virtual const Headers& headers() const = 0;
  /// The io thread of its connection.
  virtual Loop& loop() = 0;
  /// The deadline from grpc-timeout, or time_point::max(). At the deadline the call ends by itself, as when the client leaves, and calls
  /// on_gone.
  virtual std::chrono::steady_clock::time_point deadline() const = 0;

  /// Adds a header to the answer's head; call it before the first message.
  virtual void set_header(std::string_view name, std::string_view value) = 0;
  /// Like begin_grpc_message(), with reused memory.
  virtual std::string begin_message(size_t expected_bytes = 0) = 0;
  /// Sends a message with its prefix (grpc_framed, seal_grpc_message). Bytes that the client has no room for wait here. Meanwhile messages
  /// of the client are not read, and a client that takes nothing loses the call.
  virtual void send(std::string framed) = 0;
  virtual void finish(GrpcStatus status, std::string_view message = {}) = 0;
  bool ended() const { return ended_; }

  /// Takes no further message from the client until resume(); messages that have arrived are still delivered.
  virtual void pause() = 0;
  virtual void resume() = 0;

  /// Call it from on_message(), once, or from such a `then`. `read` reads the message on a helper thread (Loop::aside()), and `then` follows
  /// on this thread. The message stays valid meanwhile, and the next message comes afterwards. If the call ends before `read` starts,
  /// `read` does not run, and `then` finds ended().
  virtual void read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) = 0;
  /// The same for answers, any number of them at once. An answer of a call that has ended is not written.
  virtual void write_aside(UniqueFunction<void()> write, UniqueFunction<void()> then) = 0;

  /// State of the code that serves the call; destroyed with the call.
  std::shared_ptr<void> state;
  /// Called if the client hung up or the deadline has passed.
  UniqueFunction<void()> on_gone;
  /// Called when the server ends, which waits for all calls. A call that only waits, for a message or an event, must be finished. Without
  /// this function, a call with many messages ends at once.
  UniqueFunction<void()> on_drain;

 protected:
  ~GrpcCall() = default;
  bool ended_ = false;
};

/// Serves the calls of one method; one object serves all of them.
class GrpcMethod {
 public:
  virtual ~GrpcMethod() = default;
  /// Whether a client may send any number of messages; otherwise it must send exactly one.
  virtual bool many_messages() const { return false; }
  /// Whether answers are sent one by one, before the call ends.
  virtual bool many_answers() const { return many_messages(); }
  /// The message is valid during this function, and as described in GrpcCall::read_aside().
  virtual void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) = 0;
  /// Called if there is no memory for one of many messages, of which this is the beginning. Returns whether the call continues with the
  /// next one; otherwise it ends.
  virtual bool on_no_memory(const std::shared_ptr<GrpcCall>& call, std::string_view beginning) {
    static_cast<void>(call), static_cast<void>(beginning);
    return false;
  }
  /// The client has sent all of its messages.
  virtual void on_half_close(const std::shared_ptr<GrpcCall>&) {}
};

/// Returns the method of a path "/package.Service/Method"; null: UNIMPLEMENTED.
using GrpcMethods = std::function<GrpcMethod*(std::string_view path)>;

struct GrpcRefusal {
  GrpcStatus status;
  std::string message;
};
/// Called before a call is accepted; returns the reason if it is refused. `known`: the path names a method.
using GrpcGate = std::function<std::optional<GrpcRefusal>(std::string_view path, bool known, const Headers& headers,
                                                          const PeerCertificate* certificate)>;

}  // namespace serin::net
