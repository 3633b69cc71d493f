// response_cache.h: caches computed answers by their inputs: LRU, bounded in bytes, one for all models of the server.
//
// A key is the loaded version (its owner) and the inputs with their types, shapes and bytes. All of it is compared; a hash only selects the
// candidates. An answer has all outputs of the model, so the requested outputs are not part of the key. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "kernels/mutex.h"
#include "runtime/base/recently_used.h"
#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

uint64_t hash_inputs(const Job& job);
bool same_inputs(std::span<const TensorView> a, std::span<const TensorView> b);

class ResponseCache {
 public:
  explicit ResponseCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// `hash`: hash_inputs(job).
  std::optional<Outputs> find(const void* owner, uint64_t hash, const Job& job);
  /// `outputs` must contain this request's rows only. Its inputs are copied, because a request may own much more memory. An answer larger
  /// than the whole cache is not stored.
  void insert(const void* owner, uint64_t hash, const Job& request, Outputs outputs);
  /// Removes all entries of a version that ends.
  void forget(const void* owner);
  size_t bytes() const;

 private:
  struct Entry {
    const void* owner;
    uint64_t hash;
    Outputs inputs, outputs;
    size_t bytes;
  };
  using Entries = RecentlyUsed<Entry>;
  Entries::Iterator locate(const void* owner, uint64_t hash, const Job& job) SERIN_REQUIRES(mutex_);
  Entries::Iterator erase(Entries::Iterator entry) SERIN_REQUIRES(mutex_);

  const size_t most_bytes_;
  mutable Mutex mutex_;
  Entries entries_ SERIN_GUARDED_BY(mutex_);
  std::unordered_multimap<uint64_t, Entries::Iterator> by_hash_ SERIN_GUARDED_BY(mutex_);
  size_t bytes_ SERIN_GUARDED_BY(mutex_) = 0;
};

/// Copies the outputs to their own memory, which is exactly as large as they are.
Outputs copy_of(const Outputs& outputs);

}  // namespace serin::serving
