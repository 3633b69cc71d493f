// response_cache.h: answers that were computed, by what they were computed from: LRU, bounded in bytes, one for all models of the server.
//
// A key is the loaded version (its owner) and the inputs with their types, shapes and bytes; all of it is compared, a hash only says where to look. An answer has
// all outputs of the model, so what a client wants of them is no part of the key. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

uint64_t hash_inputs(const Job& job);
bool same_inputs(std::span<const TensorView> a, std::span<const TensorView> b);

class ResponseCache {
 public:
  explicit ResponseCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// `hash`: hash_inputs(job).
  std::optional<Outputs> find(const void* owner, uint64_t hash, const Job& job);
  /// `outputs` hold this request's rows only; its inputs are copied, because a request may hold far more than those. Larger than the whole cache: it is not kept.
  void insert(const void* owner, uint64_t hash, const Job& request, Outputs outputs);
  /// All that belongs to a version that goes.
  void forget(const void* owner);
  size_t bytes() const;

 private:
  struct Entry {
    const void* owner;
    uint64_t hash;
    Outputs inputs, outputs;
    size_t bytes;
  };
  using Entries = std::list<Entry>;
  Entries::iterator locate(const void* owner, uint64_t hash, const Job& job);  // requires mutex_
  Entries::iterator erase(Entries::iterator entry);                            // requires mutex_

  const size_t most_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;  // guarded by mutex_, as all below; who was used last is first
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
  size_t bytes_ = 0;
};

/// In memory of their own, which is no larger than they are.
Outputs copy_of(const Outputs& outputs);

}  // namespace serin::serving
