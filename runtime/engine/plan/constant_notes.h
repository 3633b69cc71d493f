// constant_notes.h: what plans would read of constants, noted without reading any (LoadOptions::only_plans).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <span>

#include "kernels/mutex.h"
#include "runtime/graph/constant.h"

namespace serin::engine {

/// Thread-safe.
class ConstantNotes {
 public:
  /// A kernel reads it plain in each run, so it stays in memory.
  void add(const graph::Constant& constant) {
    const MutexLock lock(mutex_);
    if (constant.recipe) noted_.insert(constant.recipe);
  }
  bool has(const graph::Constant& constant) const {
    const MutexLock lock(mutex_);
    return constant.recipe && noted_.contains(constant.recipe);
  }

  /// A computed constant that a load leaves in memory until the first kernel reads it.
  void waits(const graph::Constant& constant) {
    const MutexLock lock(mutex_);
    if (waiting_.insert(constant.recipe).second) waiting_bytes_ += constant.bytes();
    most_ = std::max(most_, waiting_bytes_);
  }

  /// A step has packed these weights; all packed ones are `packed` bytes now. Nothing was packed if those were as many before.
  void packed(std::span<const graph::ConstantPtr> weights, size_t packed) {
    const MutexLock lock(mutex_);
    if (packed <= packed_) return;
    packed_ = packed;
    size_t read_again = 0, were_waiting = 0;
    for (const graph::ConstantPtr& weight : weights) {
      const bool waited = waiting_.erase(weight->recipe) > 0;
      (waited ? were_waiting : read_again) += weight->bytes();
    }
    most_ = std::max(most_, packed + waiting_bytes_ + read_again);
    waiting_bytes_ -= were_waiting;
    largest_ = std::max(largest_, read_again + were_waiting);
  }
  /// The most that weights took while they were packed, and `packed` of them in the end; several threads pack several at a time.
  size_t most_while_packing(size_t packed, int threads) const {
    const MutexLock lock(mutex_);
    const size_t others = static_cast<size_t>(threads - 1) * largest_;
    return std::max(threads == 1 ? packed : packed + others + largest_, most_ + others);
  }

 private:
  using Bytes = std::shared_ptr<const graph::RecipeBytes>;

  mutable Mutex mutex_;
  std::set<Bytes> noted_ SERIN_GUARDED_BY(mutex_), waiting_ SERIN_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SERIN_GUARDED_BY(mutex_) = 0;
  size_t packed_ SERIN_GUARDED_BY(mutex_) = 0, most_ SERIN_GUARDED_BY(mutex_) = 0, largest_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace serin::engine
