// responder.cc: the way from any thread back to the connection that waits. All it touches there it touches on the connection's io thread.

#include "runtime/net/whole_request.h"

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
    if (const auto request = state_->request.lock()) request->answer(*state_, std::move(response));
    return;
  }
  if (state_->cancelled.load()) return;
  // std::function asks for what can be copied.
  state_->loop->post([state = state_, shared = std::make_shared<Response>(std::move(response))] {
    if (const auto request = state->request.lock()) request->answer(*state, std::move(*shared));
  });
}

bool Responder::cancelled() const { return state_->cancelled.load(); }

void Responder::on_cancel(std::function<void()> work) {
  if (state_ && !state_->sent) state_->on_cancel = std::move(work);
}

}  // namespace serin::net
