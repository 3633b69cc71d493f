// turns.h: a lock that waiting threads get in the order of the rows that they ask for.
//
// Threads of a run take blocks in their order, but an ordinary lock lets any of them go first. The decoder would then run ahead of a thread,
// which has to begin anew.
#pragma once

#include <cstdint>
#include <set>

#include "kernels/mutex.h"

namespace serin::datasets::columnar {

class SERIN_CAPABILITY("turn") Turns {
 public:
  void take(int64_t row) SERIN_ACQUIRE() {
    const MutexLock lock(mutex_);
    waiting_.insert(row);
    changed_.wait(mutex_, [&]() SERIN_REQUIRES(mutex_) { return !taken_ && *waiting_.begin() == row; });
    waiting_.erase(waiting_.begin());
    taken_ = true;
  }
  void give_back() SERIN_RELEASE() {
    {
      const MutexLock lock(mutex_);
      taken_ = false;
    }
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::multiset<int64_t> waiting_ SERIN_GUARDED_BY(mutex_);
  bool taken_ SERIN_GUARDED_BY(mutex_) = false;
};

/// Has the turn in its scope.
class SERIN_SCOPED_CAPABILITY Turn {
 public:
  [[nodiscard]] Turn(Turns& turns, int64_t row) SERIN_ACQUIRE(turns) : turns_(turns) { turns_.take(row); }
  ~Turn() SERIN_RELEASE() { turns_.give_back(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Turns& turns_;
};

}  // namespace serin::datasets::columnar
