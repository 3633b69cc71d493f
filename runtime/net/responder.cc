// responder.cc: the way from any thread back to the connection that waits. All it touches there it touches on the connection's io thread.

#include <boost/asio/post.hpp>

#include "runtime/net/connection.h"

namespace serin::net {

Responder::~Responder() {
  if (state_ && !state_->sent) send(json_error(500, "the request was dropped"));
}

Responder& Responder::operator=(Responder&& other) noexcept {
  Responder(std::move(other)).state_.swap(state_);  // what this held before is answered by the temporary
  return *this;
}

void Responder::send(Response response) {
  if (!state_ || state_->sent) return;
  state_->sent = true;
  if (current_loop() == state_->loop) {
    if (const auto connection = state_->connection.lock()) connection->answer(*state_, std::move(response));
    return;
  }
  if (state_->cancelled.load()) return;
  boost::asio::post(state_->loop->io, [state = state_, response = std::move(response)]() mutable {
    if (const auto connection = state->connection.lock()) connection->answer(*state, std::move(response));
  });
}

bool Responder::cancelled() const { return state_->cancelled.load(); }

void Responder::on_cancel(std::function<void()> work) {
  if (state_ && !state_->sent) state_->on_cancel = std::move(work);
}

}  // namespace serin::net
