// eventually.h: waiting for what another thread brings about.
#pragma once

#include <chrono>
#include <thread>

namespace serin::test {

/// False after ten seconds, so that a broken test ends.
template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace serin::test
