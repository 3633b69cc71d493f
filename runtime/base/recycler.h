// recycler.h: objects that are used again with the memory that they have grown, so that a steady stream of requests takes none.
//
//   Recycler<Job> jobs;
//   std::shared_ptr<Job> job = jobs.take();      // a used one, cleared, or a new one; goes back when the last pointer to it does
//
// T::clear() lets go of all that belongs to the one who used it, and of memory that is too large to keep; what remains is capacity. To those who share it a recycled
// object is a new one: a std::weak_ptr to its former life stays expired. Thread-safe; pointers may outlive the recycler.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace serin {

/// What a recycled buffer may keep: larger ones are rare, and would be missed elsewhere.
inline constexpr size_t kMostRecycledBytes = size_t{64} << 10;  // for each of Recycler::kMost, in each thread

/// Empty, with the capacity that it may keep.
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
  static constexpr size_t kMost = 64;  ///< kept while nobody uses them

  std::shared_ptr<T> take() const {
    std::unique_ptr<T> object = shelf_->take_object();
    if (!object) object = std::make_unique<T>();
    return std::shared_ptr<T>(object.release(), GiveBack{shelf_}, BlockAllocator<T>(shelf_));
  }

 private:
  /// Objects, and the blocks in which std::shared_ptr counts: those live longer where there are weak pointers.
  struct Shelf {
    std::unique_ptr<T> take_object() {
      const std::lock_guard lock(mutex);
      if (objects.empty()) return nullptr;
      std::unique_ptr<T> object = std::move(objects.back());
      objects.pop_back();
      return object;
    }
    void give_object(std::unique_ptr<T> object) {
      object->clear();
      const std::lock_guard lock(mutex);
      if (objects.size() < kMost) std::swap(objects.emplace_back(), object);
    }
    void* take_block(size_t bytes) {
      {
        const std::lock_guard lock(mutex);
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
      const std::lock_guard lock(mutex);
      if (blocks.size() < kMost) blocks.push_back(std::move(held));
    }

    struct FreeBlock {
      void operator()(void* block) const { ::operator delete(block); }
    };
    std::mutex mutex;
    std::vector<std::unique_ptr<T>> objects;               // guarded by mutex, as the next
    std::vector<std::unique_ptr<void, FreeBlock>> blocks;  // all of one size
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
