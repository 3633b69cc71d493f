// queue_policy.h: how many requests of a model may wait, for how long, and at which priorities.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serin::serving {

/// What holds for the requests that wait at one priority.
struct QueuePolicy {
  static constexpr size_t kNoLimit = SIZE_MAX;
  size_t limit = 256;                   ///< requests; over it 429
  std::chrono::nanoseconds timeout{0};  ///< longest that one waits; 0: as long as its own deadline allows
  bool may_shorten = false;             ///< a request may name a shorter time for itself (Job::patience)
  bool delay = false;                   ///< after that it goes behind the others of its priority; else it is refused

  friend bool operator==(const QueuePolicy&, const QueuePolicy&) = default;
};

/// Of a model: a policy for each priority, the most urgent first.
struct QueuePolicies {
  bool timeout_is_deadline =
      true;  ///< what a request's parameter `timeout` says: from arrival to answer; false: Job::patience, as in Triton
  std::vector<QueuePolicy> levels{1};
  size_t standard = 1;  ///< from 1: of requests that name no priority, or one that there is not
  uint64_t named =
      1;  ///< priorities that requests may name, where these are more than the levels: the last level is of those that have none

  friend bool operator==(const QueuePolicies&, const QueuePolicies&) = default;
};

}  // namespace serin::serving
