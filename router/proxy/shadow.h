// shadow.h: Sends a request that stable has answered to the canary as well, and compares the two answers. No client waits for it.
#pragma once

#include <string>

#include "router/proxy/answer_outcome.h"
#include "router/proxy/attempt.h"
#include "router/proxy/placing.h"
#include "router/proxy/pool.h"
#include "runtime/net/buffer.h"
#include "runtime/net/stream.h"

namespace serin::router {

/// Belongs to its pool and returns itself there.
class Shadow final : public net::AnswerHandler {
 public:
  Shadow(Lane& lane, Pool<Shadow>& pool) : lane_(lane), pool_(pool) {}
  /// `stable` is complete and about to be released: its body is moved out. So is the request's.
  void start(Service& service, const Placed& placed, Attempt& stable, EndpointState& endpoint, const net::Head& request,
             const Target& target, net::Buffer&& body);

  void on_answer(net::Head& head) override { canary_.take_head(head.status, head.headers); }
  void on_trailers(net::Headers& trailers) override { canary_.take_trailers(trailers); }
  void on_excess() override { canary_.malformed = true; }
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override { canary_.body.filled(bytes); }
  void on_progress(bool end) override;
  void on_writable() override { write(); }
  void on_failure(const net::Failure& failure) override;

 private:
  void name_messages(const Target& target);
  void write();
  void compare_both();
  void end();

  Lane& lane_;
  Pool<Shadow>& pool_;
  Service* service_ = nullptr;
  Placed placed_;
  std::shared_ptr<EndpointState> endpoint_, stable_endpoint_;
  Half stable_, canary_;
  Time began_;
  std::string target_;
  net::Buffer request_;
  net::ClientStream* stream_ = nullptr;
  bool too_large_ = false;  // the canary's answer: only a part of it is kept
};

}  // namespace serin::router
