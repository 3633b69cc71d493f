// placing.h: Chooses the first version for a request: stable, the version its header forces, or the draw of the running rollout.
//
// The draw is an experiment only while every arm can take the request. If the canary is down or busy, or a baseline arm is down, its share
// goes to stable. Then none of the draws is evidence, whichever arm it chose.
//
// Several rollouts of a service may be under way (control/tracks.h). Then an answer of stable is evidence for each of them.
#pragma once

#include <string>

#include "router/proxy/attempt.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"

namespace serin::router {

/// A copy of one of stable's requests for the canary, so that their answers are compared.
struct Copy {
  bool wanted = false;
  bool spare = false;  ///< only in the canary's spare time (spare_time.h)
};

struct Placed : Placement {
  size_t version = 0;
  Purpose purpose = Purpose::kFallback;
  Copy copy;
  std::string assigned;  ///< what the answer says of the draw, for its outcome (assigning.h); empty: it was not drawn among versions
};

/// kInvalidArgument: the header names an unknown version.
Result<Placed> place_request(Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now);

/// The time that the client waits: the shorter one of x-serin-timeout-ms and, for a gRPC call, grpc-timeout. kInvalidArgument: not a time.
Result<std::optional<std::chrono::nanoseconds>> time_given(const net::Headers& headers, bool grpc);

}  // namespace serin::router
