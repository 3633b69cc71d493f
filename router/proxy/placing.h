// placing.h: where a request goes first: to stable, where its header forces it to, or where the draw of the rollout under way sends it.
//
// The draw is an experiment only while every arm could take the request: a canary that is down or busy, or a baseline arm that is down, sends its
// share to stable, and then none of the draws is evidence, whichever way it went.
#pragma once

#include "router/proxy/attempt.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"

namespace serin::router {

struct Placed : Placement {
  size_t version = 0;
  Purpose purpose = Purpose::kFallback;
  bool mirror = false;  ///< stable's answer is to be compared with the canary's
};

/// kInvalidArgument: the header names a version that there is not.
Result<Placed> place_request(Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now);

/// How long the client says that it waits: x-serin-timeout-ms and, of a call, grpc-timeout; the shorter one. kInvalidArgument: no such time.
Result<std::optional<std::chrono::nanoseconds>> time_given(const net::Headers& headers, bool grpc);

}  // namespace serin::router
