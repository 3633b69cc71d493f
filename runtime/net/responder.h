// responder.h: the handler of whole requests, and its way back to the client (server.h).
#pragma once

#include <functional>
#include <memory>

#include "runtime/base/unique_function.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"

namespace serin::net {

/// The way back to one client. Move-only; call send() once, from any thread. If destroyed before that, it answers 500.
class Responder {
 public:
  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) noexcept;
  ~Responder();

  /// The io thread of the connection.
  Loop& loop() const;
  /// Returns an empty answer in reused memory. On the connection's io thread only.
  Response blank();
  void send(Response response);
  /// The client hung up: no client reads the answer. May become true at any time.
  bool cancelled() const;
  /// Runs once on the connection's io thread if the client hangs up before send(). Set it from the handler only.
  void on_cancel(UniqueFunction<void()> work);

 private:
  std::shared_ptr<State> state_;
};

/// A request that the handler does not move from is valid until the handler returns; then its memory is reused.
using Handler = std::function<void(Request&&, Responder)>;

}  // namespace serin::net
