// constant_notes.h: what plans would read of constants, noted without reading any (LoadOptions::only_plans).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>

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

  /// A step has packed weights of `plain` bytes; all packed ones are `packed` bytes now. Nothing was packed if those were as many before.
  void packed(size_t plain, size_t packed) {
    const MutexLock lock(mutex_);
    if (packed <= packed_) return;
    packed_ = packed;
    most_ = std::max(most_, packed + plain);
    largest_ = std::max(largest_, plain);
  }
  /// The most that weights took while they were packed, and `packed` of them in the end; several threads pack several at a time.
  size_t most_while_packing(size_t packed, int threads) const {
    const MutexLock lock(mutex_);
    return threads == 1 ? std::max(packed, most_) : packed + static_cast<size_t>(threads) * largest_;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::shared_ptr<const graph::RecipeBytes>> noted_ SERIN_GUARDED_BY(mutex_);
  size_t packed_ SERIN_GUARDED_BY(mutex_) = 0, most_ SERIN_GUARDED_BY(mutex_) = 0, largest_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace serin::engine
