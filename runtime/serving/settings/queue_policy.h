// queue_policy.h: how many requests of a model may wait, for how long, and at which priorities.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace serin::serving {

/// The rules for requests that wait at one priority.
struct QueuePolicy {
  static constexpr size_t kNoLimit = SIZE_MAX;
  size_t limit = 256;                   ///< requests; above it 429
  std::chrono::nanoseconds timeout{0};  ///< longest time in the queue; 0: until the request's own deadline
  bool may_shorten = false;             ///< a request may set a shorter time for itself (Job::patience)
  bool delay = false;                   ///< after that time it goes behind the others of its priority; otherwise it is refused

  friend bool operator==(const QueuePolicy&, const QueuePolicy&) = default;
};

/// For a model: a policy for each priority, the most urgent first.
struct QueuePolicies {
  bool timeout_is_deadline =
      true;  ///< meaning of a request's parameter `timeout`: time from arrival to answer; false: Job::patience, as in Triton
  std::vector<QueuePolicy> levels{1};
  size_t standard = 1;  ///< from 1: for requests without a priority, or with an unknown one
  uint64_t named = 1;   ///< number of priorities that requests may name; if it exceeds the number of levels, the last level serves the rest

  friend bool operator==(const QueuePolicies&, const QueuePolicies&) = default;
};

}  // namespace serin::serving
