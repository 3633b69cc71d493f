// published.h: an immutable value that one writer replaces and many threads read, in the common case without locks.
//
//   Published<Table> table;                       table.publish(std::make_shared<const Table>(...));      // any thread, seldom
//   Published<Table>::Reader reader(table);       const Table& now = reader.get();                        // one Reader for each thread
//
// A reader keeps its own shared_ptr and fetches a new one only when the generation counter has changed. get() is therefore one atomic load.
// (std::atomic<std::shared_ptr> writes shared memory on every load.)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/mutex.h"

namespace serin {

template <class T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> first = std::make_shared<const T>()) : value_(std::move(first)) {}

  void publish(std::shared_ptr<const T> value) {
    {
      const MutexLock lock(mutex_);
      value_.swap(value);
      generation_.fetch_add(1, std::memory_order_release);
    }
    // If no reader holds the old value, it is destroyed here, outside the lock.
  }

  std::shared_ptr<const T> get() const {
    const MutexLock lock(mutex_);
    return value_;
  }

  class Reader {
   public:
    explicit Reader(const Published& source) : source_(&source) {}
    /// Valid until the next get() on this reader.
    const std::shared_ptr<const T>& get() {
      const uint64_t generation = source_->generation_.load(std::memory_order_acquire);
      if (!held_ || generation != seen_) {
        held_ = source_->get();
        seen_ = generation;
      }
      return held_;
    }

   private:
    const Published* source_;
    std::shared_ptr<const T> held_;
    uint64_t seen_ = 0;
  };

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ SERIN_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{1};  // incremented by every publish
};

}  // namespace serin
