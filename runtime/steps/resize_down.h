// resize_down.h: sums of rows, which the compiler turns into vectors. Included once for each instruction set.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/steps/resize_loops.h"

namespace serin::steps {
namespace {

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kTapBits, 0, 255)); }

template <size_t kBlock>
void sum_block(const uint8_t* rows, size_t stride, std::span<const int32_t> weights, uint8_t* to) {
  std::array<int32_t, kBlock> sums;
  sums.fill(1 << (kTapBits - 1));
  for (const int32_t weight : weights) {
    for (size_t i = 0; i < kBlock; ++i) sums[i] += rows[i] * weight;
    rows += stride;
  }
  for (size_t i = 0; i < kBlock; ++i) to[i] = rounded(sums[i]);
}

void sum_rows(const uint8_t* rows, size_t stride, std::span<const int32_t> weights, size_t bytes, uint8_t* to) {
  constexpr size_t kBlock = 32;
  size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) sum_block<kBlock>(rows + at, stride, weights, to + at);
  for (; at < bytes; ++at) sum_block<1>(rows + at, stride, weights, to + at);
}

template <int kChannels>
void sum_pixels(const uint8_t* row, const Taps& taps, uint8_t* to) {
  std::array<int32_t, kChannels> sums;
  sums.fill(1 << (kTapBits - 1));
  const uint8_t* from = row + static_cast<ptrdiff_t>(taps.first) * kChannels;
  for (const int32_t weight : taps.weights) {
    for (int c = 0; c < kChannels; ++c) sums[static_cast<size_t>(c)] += from[c] * weight;
    from += kChannels;
  }
  for (int c = 0; c < kChannels; ++c) to[c] = rounded(sums[static_cast<size_t>(c)]);
}

template <int kChannels>
void sum_all_pixels(const uint8_t* row, std::span<const Taps> taps, uint8_t* to) {
  for (const Taps& each : taps) {
    sum_pixels<kChannels>(row, each, to);
    to += kChannels;
  }
}

}  // namespace
}  // namespace serin::steps
