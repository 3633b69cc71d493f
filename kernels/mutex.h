// mutex.h: std::mutex and std::condition_variable with the annotations of clang's thread safety analysis. A member that is used without its
// lock is then an error at compile time: tests/checks/locks.
//
//   void take_all() SERIN_REQUIRES(mutex_);                     // the caller holds the lock
//   Mutex mutex_;
//   Condition changed_;
//   std::vector<Job> jobs_ SERIN_GUARDED_BY(mutex_);
//
//   const MutexLock lock(mutex_);                               // to the end of the scope
//   changed_.wait(mutex_, [this]() SERIN_REQUIRES(mutex_) { return !jobs_.empty(); });
//   {
//     const MutexUnlock unlocked(mutex_);                       // not held in this scope
//     work();
//   }
//
// The wrappers exist because the classes of libstdc++ have no annotations: clang does not see that a std::lock_guard holds anything. They
// add no member and no call to these classes. g++ does not know the attributes; there the macros are empty. The analysis skips constructors
// and destructors.
//
// std::condition_variable_any waits on a Mutex as it is, for a thread that a std::stop_token ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define SERIN_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define SERIN_THREAD_SAFETY(attribute)
#endif

/// A member that is used only under the lock.
#define SERIN_GUARDED_BY(mutex) SERIN_THREAD_SAFETY(guarded_by(mutex))
/// A function whose caller holds the lock; of a lambda, it comes after the parameters.
#define SERIN_REQUIRES(...) SERIN_THREAD_SAFETY(requires_capability(__VA_ARGS__))
// For the classes below.
#define SERIN_CAPABILITY(name) SERIN_THREAD_SAFETY(capability(name))
#define SERIN_SCOPED_CAPABILITY SERIN_THREAD_SAFETY(scoped_lockable)
#define SERIN_ACQUIRE(...) SERIN_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define SERIN_RELEASE(...) SERIN_THREAD_SAFETY(release_capability(__VA_ARGS__))

namespace serin {

class SERIN_CAPABILITY("mutex") Mutex {
 public:
  void lock() SERIN_ACQUIRE() { mutex_.lock(); }
  void unlock() SERIN_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds the lock in its scope.
class SERIN_SCOPED_CAPABILITY MutexLock {
 public:
  [[nodiscard]] explicit MutexLock(Mutex& mutex) SERIN_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SERIN_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Gives the lock back for its scope, within a scope that holds it.
class SERIN_SCOPED_CAPABILITY MutexUnlock {
 public:
  [[nodiscard]] explicit MutexUnlock(Mutex& mutex) SERIN_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() SERIN_RELEASE() { mutex_.lock(); }  // of the scope, not of the mutex: clang calls the end of both kinds so
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

/// std::condition_variable. The caller holds the mutex; it is given back while the call waits, and held again while it asks the predicate.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  void wait(Mutex& mutex) SERIN_REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait(held.lock);
  }
  template <class Predicate>
  void wait(Mutex& mutex, Predicate predicate) SERIN_REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait(held.lock, std::move(predicate));
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time) SERIN_REQUIRES(mutex) {
    Held held(mutex);
    return condition_.wait_until(held.lock, time);
  }
  /// Both return what the predicate said last.
  template <class Clock, class Duration, class Predicate>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time, Predicate predicate) SERIN_REQUIRES(mutex) {
    Held held(mutex);
    return condition_.wait_until(held.lock, time, std::move(predicate));
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& longest, Predicate predicate) SERIN_REQUIRES(mutex) {
    Held held(mutex);
    return condition_.wait_for(held.lock, longest, std::move(predicate));
  }

 private:
  /// A lock as std::condition_variable takes it, on a mutex that the caller holds before and after.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace serin
