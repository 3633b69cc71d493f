// cold_start.h: Which endpoints of the canary are still cold. The first answers of a replica are slow, whatever its version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace serin::rollout {

class ColdStart {
 public:
  /// skip: the first answers of each endpoint that are not judged on latency.
  explicit ColdStart(uint64_t skip) : skip_(skip) {}

  /// A good answer of the canary, also to a mirrored request.
  void answered(uint32_t endpoint);
  bool is_cold(uint32_t endpoint) const;
  /// Some endpoint is warm, and no endpoint that answers is cold.
  bool all_warm() const { return skip_ == 0 || (any_warm_ && cold_.empty()); }

 private:
  uint64_t skip_;
  std::vector<uint64_t> answers_;  // of each endpoint
  uint64_t total_ = 0;             // of these answers
  bool any_warm_ = false;
  struct Cold {
    size_t endpoint;
    uint64_t last;  // total_ at its latest answer
  };
  std::vector<Cold> cold_;  // those that answer, but not enough yet
};

}  // namespace serin::rollout
