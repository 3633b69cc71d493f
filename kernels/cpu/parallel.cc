// parallel.cc: runs one job at a time on the worker threads. run() fills the job in, opens it by making job_ odd, takes tasks like every
// worker, closes it and waits for the workers inside. A worker enters by counting itself in inside_ and then checks whether the job is
// still open; run() closes the job and then reads inside_. All of it is sequentially consistent, so one of the two sees the other. A worker
// that comes late touches nothing, and no thread waits for a worker that sleeps.

#include "kernels/cpu/parallel.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace serin::kernels {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::microseconds(50);
constexpr auto kLookAlone = std::chrono::microseconds(5);  // after that the core is offered to others between two looks

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

Workers::Workers(int count) {
  for (int worker = 1; worker < count; ++worker) threads_.emplace_back([this, worker] { work(worker); });
}

Workers::~Workers() {
  stop_ = true;
  job_ += 2;
  job_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(int64_t tasks, Task task, void* context) {
  task_ = task, context_ = context, tasks_ = tasks;
  next_ = 0;
  ++job_;
  if (sleeping_ != 0) job_.notify_all();
  take_tasks(0);
  ++job_;
  for (int looks = 0; inside_ != 0; ++looks) {
    pause();
    if (looks > 10'000) std::this_thread::yield();  // a worker was put off its core in the middle of a task
  }
}

void Workers::take_tasks(int worker) {
  for (int64_t task = next_++; task < tasks_; task = next_++) task_(context_, task, worker);
}

void Workers::work(int worker) {
  uint32_t seen = 0;
  while (wait_for_job(seen)) {
    seen = job_;
    ++inside_;
    if (job_ == seen && seen % 2 == 1) take_tasks(worker);
    --inside_;
  }
}

/// Returns when job_ is no longer `last`; false when it is time to end.
bool Workers::wait_for_job(uint32_t last) {
  const auto begin = Clock::now();
  while (job_ == last) {
    for (int i = 0; i < 32 && job_ == last; ++i) pause();
    const auto spent = Clock::now() - begin;
    if (spent > kLookAlone) std::this_thread::yield();
    if (spent < kLook || job_ != last) continue;
    ++sleeping_;
    job_.wait(last);
    --sleeping_;
  }
  return !stop_;
}

}  // namespace serin::kernels
