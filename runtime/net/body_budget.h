// body_budget.h: memory for large bodies. Each body may have a certain size whatever else is under way; what it has beyond that comes out of one budget for
// all bodies of all servers that share it, so that a few large ones are taken and many are not.
//
//   auto budget = std::make_shared<BodyBudget>(/*each=*/64 << 20, /*all=*/1 << 30);
//   BodyBudget::Share share;                                 // of one body
//   if (!share.grow(budget, bytes)) ... refused: try again later ...
//
// Thread-safe, but for Share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace serin::net {

class BodyBudget {
 public:
  BodyBudget(size_t each, size_t all) : each_(each), left_(all) {}

  /// What a body may have without asking.
  size_t each() const { return each_; }
  size_t left() const { return left_.load(std::memory_order_relaxed); }

  class Share {
   public:
    Share() = default;
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { release(); }

    /// Whether the body may have so many bytes. No budget: it may.
    bool grow(const std::shared_ptr<BodyBudget>& budget, size_t bytes) {
      if (!budget || bytes <= budget->each_ + taken_) return true;
      const size_t more = bytes - budget->each_ - taken_;
      if (!budget->take(more)) return false;
      taken_ += more;
      budget_ = budget;
      return true;
    }
    void release() {
      if (const auto budget = std::exchange(budget_, nullptr)) budget->left_.fetch_add(std::exchange(taken_, 0));
    }

   private:
    std::shared_ptr<BodyBudget> budget_;  // null: nothing was taken
    size_t taken_ = 0;
  };

 private:
  bool take(size_t bytes) {
    size_t left = left_.load();
    while (bytes <= left)
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    return false;
  }

  const size_t each_;
  std::atomic<size_t> left_;
};

}  // namespace serin::net
