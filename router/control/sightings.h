// sightings.h: The messages in which a router sends every answer that it judged to the leader.
//
// The leader so judges as a single router with all the traffic would. A message has a few dozen bytes for each answer, every ten
// milliseconds: small compared with the answers themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/observation.h"
#include "runtime/base/result.h"

namespace serin::router {

struct Sightings {
  std::string service, rollout;  ///< the rollout's id
  uint64_t epoch = 0;
  std::vector<rollout::Observation> observations;
  std::vector<rollout::ShadowPair> pairs;
  uint64_t dropped = 0;  ///< seen since the last message, but not included: the queue was full

  bool empty() const { return observations.empty() && pairs.empty(); }
};

/// One message between routers. (sender, sequence) identifies it: a repeated message counts once.
struct SightingsMessage {
  std::string sender;  ///< id of a member, followed by an id of its run
  uint64_t sequence = 0;
  Sightings sightings;
};

std::string encode(const SightingsMessage& message);
/// kCorrupt at the first invalid byte; no length in the input is trusted.
Result<SightingsMessage> decode(std::string_view bytes);

}  // namespace serin::router
