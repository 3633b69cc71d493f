// vocabulary.cc: open addressing, at most half full.

#include "runtime/steps/text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace serin::steps::text {

/// Eight bytes a step, each mixed in by a product. A token is short, so the tail is the common case.
uint64_t Vocabulary::hash(std::string_view token) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
  const auto mix = [](uint64_t value) {
    value *= kFactor;
    return value ^ value >> 32;
  };
  uint64_t state = kFactor ^ token.size();
  const char* at = token.data();
  size_t left = token.size();
  for (; left > 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    state = mix(state ^ word);
  }
  uint64_t word = 0;
  if (left >= 4) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + left - 4, 4);
    word = uint64_t{high} << 32 | low;
  } else if (left > 0) {
    word = uint64_t{static_cast<unsigned char>(at[0])} << 16 | uint64_t{static_cast<unsigned char>(at[left / 2])} << 8 |
           static_cast<unsigned char>(at[left - 1]);
  }
  return mix(mix(state ^ word));
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  tokens_.reserve(tokens);
  bytes_.reserve(bytes);
  grow(std::bit_ceil(std::max<size_t>(16, tokens * 2)));
}

void Vocabulary::set(std::string_view token, int32_t id) {
  if ((tokens_.size() + 1) * 2 > slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const uint64_t wanted = hash(token);
  size_t slot = wanted & mask_;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask_) {
    Token& found = tokens_[slots_[slot] - 1];
    if (found.hash != wanted || text(found) != token) continue;
    found.id = id;
    return;
  }
  tokens_.push_back({wanted, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size()), id});
  bytes_ += token;
  slots_[slot] = static_cast<uint32_t>(tokens_.size());
}

void Vocabulary::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, 0);
  mask_ = slots - 1;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    size_t slot = tokens_[i].hash & mask_;
    while (slots_[slot] != 0) slot = (slot + 1) & mask_;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace serin::steps::text
