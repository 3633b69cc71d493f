// sightings.h: what one router tells the leader of several: every answer that it has judged, so that the leader judges as one router would that
// had all the traffic. A few dozen bytes for each answer, every ten milliseconds: small beside the answers themselves.
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
  uint64_t dropped = 0;  ///< seen since the last message, but not in it: the queue was full

  bool empty() const { return observations.empty() && pairs.empty(); }
};

/// One message between routers. (sender, sequence) names it: the same one twice counts once.
struct SightingsMessage {
  std::string sender;  ///< id of a member and, after it, what tells two runs of it apart
  uint64_t sequence = 0;
  Sightings sightings;
};

std::string encode(const SightingsMessage& message);
/// kCorrupt at the first byte that makes no sense; nothing is believed of its lengths.
Result<SightingsMessage> decode(std::string_view bytes);

}  // namespace serin::router
