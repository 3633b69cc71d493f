// key_filter.h: A set of the keys that have had their bad event: a Bloom filter (Bloom 1970) of fixed size.
//
// The size is fixed because the number of users that an outage affects is unknown. False positives are the same for both arms: evidence is
// lost then, never invented. At 200,000 keys they are one in 1,000, at 500,000 one in 40.
#pragma once

#include <cstdint>
#include <vector>

namespace serin::rollout {

class KeyFilter {
 public:
  /// key: a hash.
  bool has(uint64_t key) const {
    if (bits_.empty()) return false;
    for (int i = 0; i < kProbes; ++i)
      if ((bits_[place(key, i) / 64] >> (place(key, i) % 64) & 1) == 0) return false;
    return true;
  }
  void add(uint64_t key) {
    if (bits_.empty()) bits_.resize(kBits / 64);  // a rollout without sticky keys never allocates it
    for (int i = 0; i < kProbes; ++i) bits_[place(key, i) / 64] |= uint64_t{1} << place(key, i) % 64;
  }

 private:
  static constexpr uint64_t kBits = uint64_t{1} << 22;  // 512 KiB
  static constexpr int kProbes = 4;
  /// Two halves of one hash make any number of hashes (Kirsch, Mitzenmacher 2006).
  static uint64_t place(uint64_t key, int i) { return ((key >> 32) + static_cast<uint64_t>(i) * (key << 1 | 1)) % kBits; }

  std::vector<uint64_t> bits_;
};

}  // namespace serin::rollout
