// recycler.h: reuses objects together with the memory that they have allocated, so that a steady stream of requests allocates none.
//
//   Recycler<Job> jobs;
//   std::shared_ptr<Job> job = jobs.take();      // a cleared used object or a new one; it returns when the last pointer to it is gone
//
// T::clear() releases everything that belongs to the last user, and memory that is too large to keep; capacity remains. For its users a
// recycled object is a new one: a std::weak_ptr to its former life stays expired. Thread-safe; pointers may outlive the recycler.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/mutex.h"

namespace serin {

/// Limit of the memory that a recycled buffer keeps. Larger buffers are rare, and their memory is needed elsewhere.
inline constexpr size_t kMostRecycledBytes = size_t{64} << 10;  // for each of the Recycler::kMost objects, in each thread

/// Makes the container empty and keeps its capacity, up to the limit.
template <class Container>
void clear_for_reuse(Container& used) {
  if (used.capacity() * sizeof(used[0]) > kMostRecycledBytes)
    Container().swap(used);  // assigning an empty string keeps the memory
  else
    used.clear();
}

template <class T>
class Recycler {
 public:
  static constexpr size_t kMost = 64;  ///< unused objects that are kept

  std::shared_ptr<T> take() const {
    std::unique_ptr<T> object = shelf_->take_object();
    if (!object) object = std::make_unique<T>();
    return std::shared_ptr<T>(object.release(), GiveBack{shelf_}, BlockAllocator<T>(shelf_));
  }

 private:
  /// Stores objects and the control blocks of std::shared_ptr. The blocks live longer than the objects while weak pointers exist.
  struct Shelf {
    std::unique_ptr<T> take_object() {
      const MutexLock lock(mutex);
      if (objects.empty()) return nullptr;
      std::unique_ptr<T> object = std::move(objects.back());
      objects.pop_back();
      return object;
    }
    void give_object(std::unique_ptr<T> object) {
      object->clear();
      const MutexLock lock(mutex);
      if (objects.size() < kMost) std::swap(objects.emplace_back(), object);
    }
    void* take_block(size_t bytes) {
      {
        const MutexLock lock(mutex);
        if (!blocks.empty()) {
          void* const block = blocks.back().release();
          blocks.pop_back();
          return block;
        }
      }
      return ::operator new(bytes);
    }
    void give_block(void* block) {
      std::unique_ptr<void, FreeBlock> held(block);
      const MutexLock lock(mutex);
      if (blocks.size() < kMost) blocks.push_back(std::move(held));
    }

    struct FreeBlock {
      void operator()(void* block) const { ::operator delete(block); }
    };
    Mutex mutex;
    std::vector<std::unique_ptr<T>> objects SERIN_GUARDED_BY(mutex);
    std::vector<std::unique_ptr<void, FreeBlock>> blocks SERIN_GUARDED_BY(mutex);  // all of one size
  };

  struct GiveBack {
    std::shared_ptr<Shelf> shelf;
    void operator()(T* used) const { shelf->give_object(std::unique_ptr<T>(used)); }
  };

  template <class U>
  struct BlockAllocator {
    using value_type = U;
    explicit BlockAllocator(std::shared_ptr<Shelf> to) : shelf(std::move(to)) {}
    template <class V>
    BlockAllocator(const BlockAllocator<V>& other) : shelf(other.shelf) {}  // NOLINT(google-explicit-constructor): as allocators are
    U* allocate(size_t) { return static_cast<U*>(shelf->take_block(sizeof(U))); }
    void deallocate(U* block, size_t) { shelf->give_block(block); }
    template <class V>
    bool operator==(const BlockAllocator<V>& other) const {
      return shelf == other.shelf;
    }
    std::shared_ptr<Shelf> shelf;
  };

  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace serin
