// memory_budget.h: memory for what clients send. Each of them may have a certain size whatever else is under way; what it has beyond that comes out of one budget
// for all that share it, so that a few large ones are taken and many are not.
//
//   auto budget = std::make_shared<MemoryBudget>(/*each=*/64 << 20, /*all=*/1 << 30);
//   MemoryBudget::Share share;                                 // of one
//   if (!share.resize(budget, bytes)) ... refused: try again later, or never where bytes > budget->most() ...
//
// Thread-safe, but for Share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace serin {

class MemoryBudget {
 public:
  MemoryBudget(size_t each, size_t all) : each_(each), all_(all), left_(all) {}

  /// What one may have without asking.
  size_t each() const { return each_; }
  /// What one may have while nobody else has any.
  size_t most() const { return each_ + all_; }
  /// What to ask for where `bytes` have come and there is to be room for more: the room may go beyond most(), they may not.
  size_t with_room(size_t bytes, size_t room) const { return std::max(bytes, std::min(bytes + room, most())); }
  size_t left() const { return left_.load(std::memory_order_relaxed); }

  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), taken_(std::exchange(other.taken_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      Share moved(std::move(other));
      std::swap(budget_, moved.budget_);
      std::swap(taken_, moved.taken_);
      return *this;
    }
    ~Share() { release(); }

    /// Whether it may have so many bytes, more or fewer than before; where not, it keeps what it had. No budget: it may.
    bool resize(const std::shared_ptr<MemoryBudget>& budget, size_t bytes) {
      const size_t needed = budget && bytes > budget->each_ ? bytes - budget->each_ : 0;
      if (needed > taken_) {
        if (!budget->take(needed - taken_)) return false;
        budget_ = budget;
        taken_ = needed;
      } else if (needed < taken_) {
        budget_->left_.fetch_add(taken_ - needed);
        taken_ = needed;
      }
      return true;
    }
    void release() {
      if (const auto budget = std::exchange(budget_, nullptr)) budget->left_.fetch_add(std::exchange(taken_, 0));
    }
    /// It has no more than each may have.
    bool small() const { return taken_ == 0; }

   private:
    std::shared_ptr<MemoryBudget> budget_;  // null: nothing was taken
    size_t taken_ = 0;
  };

 private:
  bool take(size_t bytes) {
    size_t left = left_.load();
    while (bytes <= left)
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    return false;
  }

  const size_t each_, all_;
  std::atomic<size_t> left_;
};

}  // namespace serin
