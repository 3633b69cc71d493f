// arena_memory.cc: packs buffers whose lifetimes overlap into one block.
//
// Greedy by size: the largest buffer is placed first, each next one in the smallest gap between those already placed that are live at the
// same time, or above them. Finding the best packing is NP-hard; this order reaches the lower bound (the most bytes live at once) on every
// network we measured, because the few large buffers decide and they are placed while nothing is in their way. Where it does not, the order by
// size times lifetime is tried as well and the better packing kept. O(n^2) in the number of buffers, which is under a thousand for the models
// at hand and paid once for each plan.

#include "runtime/engine/plan/arena_memory.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace serin::engine {

namespace {

bool overlap_in_time(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

/// Start of the smallest gap of `bytes` or more between `taken` (sorted by offset), or the end of the last one.
struct Taken {
  size_t begin, end;
};
size_t best_gap(std::span<const Taken> taken, size_t bytes) {
  size_t best = SIZE_MAX, best_size = SIZE_MAX, end = 0;
  for (const Taken& block : taken) {
    const size_t gap = block.begin > end ? block.begin - end : 0;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, block.end);
  }
  return best == SIZE_MAX ? end : best;
}

Packing pack_in_order(std::span<const Interval> intervals, std::span<const size_t> order, size_t alignment) {
  Packing packing;
  packing.offsets.resize(intervals.size());
  std::vector<size_t> placed;  // by rising offset
  std::vector<Taken> taken;
  for (const size_t i : order) {
    const size_t bytes = aligned(intervals[i].bytes, alignment);
    taken.clear();
    for (const size_t other : placed) {
      if (!overlap_in_time(intervals[i], intervals[other])) continue;
      taken.push_back({packing.offsets[other], packing.offsets[other] + aligned(intervals[other].bytes, alignment)});
    }
    const size_t offset = best_gap(taken, bytes);
    packing.offsets[i] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset, [&](size_t o, size_t p) { return o < packing.offsets[p]; });
    placed.insert(at, i);
  }
  return packing;
}

size_t steps(const Interval& interval) { return static_cast<size_t>(interval.last - interval.first) + 1; }

/// Indices by falling weight; of equals the longer-lived one first, which is in the way of more.
template <class Weight>
Packing pack_by(std::span<const Interval> intervals, size_t alignment, Weight weight) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(weight(intervals[a]), steps(intervals[a])) > std::pair(weight(intervals[b]), steps(intervals[b]));
  });
  return pack_in_order(intervals, order, alignment);
}

}  // namespace

Packing pack(std::span<const Interval> intervals, size_t alignment) {
  Packing by_size = pack_by(intervals, alignment, [](const Interval& interval) { return interval.bytes; });
  if (by_size.bytes == live_bytes(intervals, alignment)) return by_size;
  Packing by_area = pack_by(intervals, alignment, [](const Interval& interval) { return interval.bytes * steps(interval); });
  return by_area.bytes < by_size.bytes ? by_area : by_size;
}

size_t live_bytes(std::span<const Interval> intervals, size_t alignment) {
  // The maximum is reached in the first step of some interval.
  size_t most = 0;
  for (const Interval& at : intervals) {
    size_t live = 0;
    for (const Interval& other : intervals) {
      if (other.first <= at.first && at.first <= other.last) live += aligned(other.bytes, alignment);
    }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace serin::engine
