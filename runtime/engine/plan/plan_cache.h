// plan_cache.h: caches the plans of one model by exact bindings; the least recently used is evicted first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "runtime/engine/engine.h"
#include "runtime/engine/plan.h"

namespace serin::engine {

/// Not thread-safe: the model's mutex guards it. There are few plans, so the list is searched; keys are compared as a whole, never by hash.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

  std::shared_ptr<const Plan> find(const graph::Bindings& bindings) {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Entry& entry) { return entry.first == bindings; });
    if (found == plans_.end()) {
      ++counters_.misses;
      return nullptr;
    }
    ++counters_.hits;
    plans_.splice(plans_.begin(), plans_, found);
    return found->second;
  }

  /// If two threads made the same plan, the second gets the first one's.
  std::shared_ptr<const Plan> insert(const graph::Bindings& bindings, std::shared_ptr<const Plan> plan) {
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Entry& entry) { return entry.first == bindings; });
    if (found != plans_.end()) return found->second;
    plans_.emplace_front(bindings, std::move(plan));
    if (plans_.size() > capacity_) {
      plans_.pop_back();
      ++counters_.evictions;
    }
    return plans_.front().second;
  }

  const Model::CacheCounters& counters() const { return counters_; }

 private:
  using Entry = std::pair<graph::Bindings, std::shared_ptr<const Plan>>;
  size_t capacity_;
  std::list<Entry> plans_;  // most recently used first
  Model::CacheCounters counters_;
};

}  // namespace serin::engine
