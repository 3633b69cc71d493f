// unique_function.h: a callable that can be moved but not copied, like C++23's std::move_only_function.
//
// It has room for the usual captures of a callback: one or two shared_ptrs, or a std::function. std::function allocates memory for every
// capture that is not trivial to copy, even a single shared_ptr.
//
//   UniqueFunction<void()> work = [self = shared_from_this()] { self->go_on(); };      // allocates nothing
//   work();
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace serin {

template <class Signature>
class UniqueFunction;

template <class Result, class... Arguments>
class UniqueFunction<Result(Arguments...)> {
 public:
  static constexpr size_t kRoom = 48;  ///< larger callables are stored on the heap

  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as in std::function
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, UniqueFunction> && std::is_invocable_r_v<Result, std::decay_t<F>&, Arguments...>)
  UniqueFunction(F&& work) {  // NOLINT(google-explicit-constructor)
    using Held = std::conditional_t<kFits<std::decay_t<F>>, std::decay_t<F>, OnHeap<std::decay_t<F>>>;
    std::construct_at(reinterpret_cast<Held*>(room_), std::forward<F>(work));
    // NOLINTNEXTLINE(performance-unnecessary-value-param): other callables take them by value
    call_ = [](void* held, Arguments... arguments) -> Result { return (*static_cast<Held*>(held))(std::forward<Arguments>(arguments)...); };
    move_ = [](void* from, void* to) {
      if (to) std::construct_at(static_cast<Held*>(to), std::move(*static_cast<Held*>(from)));
      std::destroy_at(static_cast<Held*>(from));
    };
  }
  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    UniqueFunction before(std::move(*this));  // destroyed last: its destructor may look at this object
    take(other);
    return *this;
  }
  ~UniqueFunction() {
    if (move_) move_(room_, nullptr);
  }

  /// Requires a stored callable.
  Result operator()(Arguments... arguments) { return call_(room_, std::forward<Arguments>(arguments)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  template <class F>
  struct OnHeap {
    explicit OnHeap(F&& work) : held(std::make_unique<F>(std::move(work))) {}
    explicit OnHeap(const F& work) : held(std::make_unique<F>(work)) {}
    Result operator()(Arguments... arguments) { return (*held)(std::forward<Arguments>(arguments)...); }
    std::unique_ptr<F> held;
  };
  template <class F>
  static constexpr bool kFits = sizeof(F) <= kRoom && alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  void take(UniqueFunction& other) {
    call_ = std::exchange(other.call_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
    if (move_) move_(other.room_, room_);
  }

  alignas(std::max_align_t) std::byte room_[kRoom];
  Result (*call_)(void* held, Arguments... arguments) = nullptr;
  void (*move_)(void* from, void* to) = nullptr;  // `to` null: only destroys the callable
};

}  // namespace serin
