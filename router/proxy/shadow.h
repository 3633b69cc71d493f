// shadow.h: a request that stable has answered, sent to the canary as well, and the two answers compared. No client waits for it.
#pragma once

#include <string>

#include "router/proxy/attempt.h"
#include "runtime/net/buffer.h"
#include "runtime/net/stream.h"

namespace serin::router {

/// Belongs to its lane and ends itself there.
class Shadow final : public net::AnswerHandler {
 public:
  /// `stable`: whole, and about to be forgotten.
  Shadow(Lane& lane, Service& service, const Placement& placement, Attempt& stable, EndpointState& endpoint);
  ~Shadow();
  void start(const net::Head& request, const Target& target, net::Buffer&& body);

  void on_answer(net::Head& head) override;
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override { body_.filled(bytes); }
  void on_progress(bool end) override;
  void on_writable() override { write(); }
  void on_failure(const net::Failure& failure) override;

 private:
  void write();
  void compare_with(const Result<net::Response>& canary);

  Lane& lane_;
  Service& service_;
  const Placement placement_;
  const std::shared_ptr<EndpointState> endpoint_, stable_endpoint_;
  net::Response stable_, canary_;
  net::Buffer request_, body_;
  net::ClientStream* stream_ = nullptr;
};

}  // namespace serin::router
