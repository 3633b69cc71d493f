// plan_cache.h: caches the plans of one model by exact bindings; the least recently used is evicted first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "runtime/base/recently_used.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/plan.h"

namespace serin::engine {

/// Not thread-safe: the model's mutex guards it. There are few plans, so the list is searched; keys are compared as a whole, never by hash.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

  std::shared_ptr<const Plan> find(const graph::Bindings& bindings) {
    const Entry* found = entry_of(bindings);
    ++(found ? counters_.hits : counters_.misses);
    return found ? found->second : nullptr;
  }

  /// If two threads made the same plan, the second gets the first one's.
  std::shared_ptr<const Plan> insert(const graph::Bindings& bindings, std::shared_ptr<const Plan> plan) {
    if (const Entry* found = entry_of(bindings)) return found->second;
    const Entry& added = plans_.add({bindings, std::move(plan)});
    if (plans_.size() > capacity_) {
      plans_.drop_oldest();
      ++counters_.evictions;
    }
    return added.second;
  }

  const Model::CacheCounters& counters() const { return counters_; }

 private:
  using Entry = std::pair<graph::Bindings, std::shared_ptr<const Plan>>;
  const Entry* entry_of(const graph::Bindings& bindings) {
    return plans_.find([&](const Entry& entry) { return entry.first == bindings; });
  }

  size_t capacity_;
  RecentlyUsed<Entry> plans_;
  Model::CacheCounters counters_;
};

}  // namespace serin::engine
