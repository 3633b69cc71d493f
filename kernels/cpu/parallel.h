// parallel.h: The cores of one executor, for every kernel that splits its work.
//
//   parallel_for(stream, tasks, [&](int64_t task, int worker) { ... });
//
// Tasks are handed out one by one to free workers. A task must compute the same on every worker. Then the bits of a result depend on how
// the work was split, and not on timing. `worker` is in [0, Workers::count()): the index of a piece of scratch. Without workers all tasks
// run here, in order.
//
// A parked thread costs nothing, but takes some microseconds to wake; kernels follow each other faster than that. So a worker without work
// looks for more for up to 50 us, then sleeps until it is woken. An idle server uses no core.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/backend.h"

namespace serin::kernels {

/// The calling thread and count() - 1 others. Only one thread may call run() at a time.
class Workers {
 public:
  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const { return static_cast<int>(threads_.size()) + 1; }

  using Task = void (*)(void* context, int64_t task, int worker);
  /// Calls task(context, i, worker) for each i in [0, tasks); all have finished when it returns. A task must not throw.
  void run(int64_t tasks, Task task, void* context);

 private:
  void work(int worker);
  void take_tasks(int worker);
  bool wait_for_job(uint32_t last);

  std::vector<std::thread> threads_;

  // The job. run() writes it while no worker reads it.
  Task task_ = nullptr;
  void* context_ = nullptr;
  int64_t tasks_ = 0;

  alignas(64) std::atomic<int64_t> next_{0};  // the next task to hand out
  alignas(64) std::atomic<uint32_t> job_{0};  // odd: a job is open
  alignas(64) std::atomic<int> inside_{0};    // workers that read the job
  alignas(64) std::atomic<int> sleeping_{0};  // workers that must be woken
  std::atomic<bool> stop_{false};
};

template <class F>
void parallel_for(const Stream& stream, int64_t tasks, F&& f) {
  if (!stream.workers || tasks < 2) {
    for (int64_t task = 0; task < tasks; ++task) f(task, 0);
    return;
  }
  stream.workers->run(
      tasks, [](void* context, int64_t task, int worker) { (*static_cast<std::remove_reference_t<F>*>(context))(task, worker); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace serin::kernels
