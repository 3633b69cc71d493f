// memory_budget.h: limits the memory that requests take together.
//
// Each request may take a fixed amount at any time. Memory beyond that comes out of one shared budget, so that a few large requests are
// accepted and many are not.
//
//   auto budget = std::make_shared<MemoryBudget>(/*each=*/64 << 20, /*all=*/1 << 30);
//   MemoryBudget::Share share;                                 // of one request
//   if (!share.resize(budget, bytes)) ... refused: try again later, or never if bytes > budget->most() ...
//
// Thread-safe, except Share.
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

  /// Bytes that one share may always take.
  size_t each() const { return each_; }
  /// Bytes that one share may take while no other share uses the budget.
  size_t most() const { return each_ + all_; }
  /// The size to request when `bytes` have arrived and room for more is wanted. The room is cut at most(); the bytes that arrived are not.
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

    /// Resizes the share, up or down; returns false and leaves it unchanged if the budget has too little left. Without a budget it returns
    /// true.
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
    /// Whether the share takes no more than each().
    bool small() const { return taken_ == 0; }

   private:
    std::shared_ptr<MemoryBudget> budget_;  // null: nothing was taken from the budget
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
