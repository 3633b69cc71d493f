// shadow.h: Sends a request that stable has answered to the canary as well, and compares the two answers. No client waits for it.
#pragma once

#include "router/proxy/answer_outcome.h"
#include "router/proxy/attempt.h"
#include "router/proxy/kept_call.h"
#include "router/proxy/placing.h"
#include "router/proxy/pool.h"
#include "runtime/net/buffer.h"

namespace serin::router {

/// Belongs to its pool and returns itself there.
class Shadow final : public KeptCall::Owner {
 public:
  Shadow(Lane& lane, Pool<Shadow>& pool) : lane_(lane), pool_(pool), canary_(lane, *this) {}
  /// `stable` is complete and about to be released: its body is moved out. So is the request's.
  void start(Service& service, const Placed& placed, Attempt& stable, EndpointState& endpoint, const net::Head& request,
             const Target& target, net::Buffer&& body);

  void on_end(KeptCall& canary, bool ours) override;

 private:
  void compare_both();

  Lane& lane_;
  Pool<Shadow>& pool_;
  Service* service_ = nullptr;
  Placed placed_;
  std::shared_ptr<EndpointState> endpoint_, stable_endpoint_;
  Half stable_;
  KeptCall canary_;
  Time began_;
};

}  // namespace serin::router
