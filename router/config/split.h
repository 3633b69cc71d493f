// split.h: The data that places a request, in one 64-bit word: one atomic load for each request, one atomic store to roll back.
//
// The words are in a memory page shared with a file. A weight that fell therefore stays fallen if the router is killed before it writes its
// database: on restart the smaller value of page and database applies (restore.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace serin::router {

struct Split {
  uint32_t weight_ppm = 0;  ///< canary's share of requests; 0 if there is no rollout
  uint32_t shadow_ppm = 0;  ///< share of stable's requests mirrored to the canary
  uint32_t stable = 0;      ///< index of a version within its service
  uint32_t canary = kNoCanary;
  uint32_t epoch = 0;  ///< low 12 bits of the rollout's epoch: an answer drawn under another epoch is no evidence

  static constexpr uint32_t kNoCanary = 63;
  static constexpr uint32_t kEpochMask = 0xfff;

  uint64_t pack() const {
    return uint64_t{weight_ppm} | uint64_t{shadow_ppm} << 20 | uint64_t{stable} << 40 | uint64_t{canary} << 46 |
           uint64_t{epoch & kEpochMask} << 52;
  }
  static Split unpack(uint64_t word) {
    const auto bits = [word](int shift, int count) { return static_cast<uint32_t>(word >> shift & ((uint64_t{1} << count) - 1)); };
    return {bits(0, 20), bits(20, 20), bits(40, 6), bits(46, 6), bits(52, 12)};
  }
  friend bool operator==(const Split&, const Split&) = default;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace serin::router
