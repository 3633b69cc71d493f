// responder.cc: the way from any thread back to the connection that waits. All it touches there it touches on the connection's io thread.

#include "runtime/net/server/whole_request.h"

namespace serin::net {

Responder::~Responder() {
  if (state_ && !state_->sent) send(json_error(500, "the request was dropped"));
}

Responder& Responder::operator=(Responder&& other) noexcept {
  Responder(std::move(other)).state_.swap(state_);  // what this held before is answered by the temporary
  return *this;
}

Response Responder::blank() { return state_ ? std::exchange(state_->answer, {}) : Response(); }

void Responder::send(Response response) {
  if (!state_ || state_->sent) return;
  state_->sent = true;
  if (current_loop() == state_->loop) {
    if (const auto request = state_->request.lock()) request->answer(*state_, std::move(response));
    return;
  }
  if (state_->cancelled.load()) return;
  state_->loop->post([state = state_, response = std::move(response)]() mutable {
    if (const auto request = state->request.lock()) request->answer(*state, std::move(response));
  });
}

void Responder::State::clear() {
  request.reset();
  cancelled = sent = false;
  on_cancel = nullptr;
  asked.clear();
  answer.clear();
}

bool Responder::cancelled() const { return state_->cancelled.load(); }

void Responder::on_cancel(UniqueFunction<void()> work) {
  if (state_ && !state_->sent) state_->on_cancel = std::move(work);
}

}  // namespace serin::net
