// state_machine.h: a state that changes only along the transitions of a table; any other change is a bug, which assert() reports.
//
//   enum class State : uint8_t { kOpen, kClosed };
//   static constexpr StateSet next(State from) { return from == State::kOpen ? StateSet(State::kClosed) : StateSet(); }
//   StateMachine<State, next> state_{State::kOpen};
//   if (state_.in(State::kOpen)) state_.enter(State::kClosed);
#pragma once

#include <cassert>
#include <cstdint>

namespace serin {

/// Some of the states of one enum with at most 32 values.
class StateSet {
 public:
  template <class... State>
  explicit constexpr StateSet(State... states) : bits_((0u | ... | (1u << static_cast<unsigned>(states)))) {}
  template <class State>
  constexpr bool has(State state) const {
    return (bits_ >> static_cast<unsigned>(state) & 1u) != 0;
  }

 private:
  uint32_t bits_;
};

/// `kNext(state)`: the states that may follow it.
template <class State, StateSet (*kNext)(State)>
class StateMachine {
 public:
  explicit StateMachine(State first) : state_(first) {}
  State now() const { return state_; }
  template <class... States>
  bool in(States... states) const {
    return ((state_ == states) || ...);
  }
  void enter(State next) {
    assert(kNext(state_).has(next));
    state_ = next;
  }

 private:
  State state_;
};

}  // namespace serin
