// ranges.h: Splits work that can be cut anywhere among the workers of a stream.
//
//   parallel_ranges(stream, n, kElements, [&](int64_t begin, int64_t end) { loop(x + begin, y + begin, end - begin); });
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace serin::kernels::cpu {

/// The elements that justify a task if each costs little: waking a worker takes as long as moving some ten thousand.
inline constexpr int64_t kElements = 1 << 14;

/// f(begin, end) over parts of [0, n) of at least `grain`, a few for each worker; they begin at multiples of 64.
template <class F>
void parallel_ranges(const Stream& stream, int64_t n, int64_t grain, F&& f) {
  const int64_t workers = stream.workers ? stream.workers->count() : 1;
  const int64_t tasks = std::min(workers * 3, n / std::max<int64_t>(grain, 1));
  if (workers == 1 || tasks < 2) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  const int64_t each = (n / tasks + 63) / 64 * 64;
  parallel_for(stream, (n + each - 1) / each, [&](int64_t task, int) { f(task * each, std::min(n, (task + 1) * each)); });
}

/// The same for rows that cost as much as `row` elements each; parts begin at any row.
template <class F>
void parallel_rows(const Stream& stream, int64_t rows, int64_t row, F&& f) {
  const int64_t workers = stream.workers ? stream.workers->count() : 1;
  const int64_t tasks = std::min({rows, workers * 3, rows * std::max<int64_t>(row, 1) / kElements});
  if (workers == 1 || tasks < 2) {
    if (rows > 0) f(int64_t{0}, rows);
    return;
  }
  parallel_for(stream, tasks, [&](int64_t task, int) { f(rows * task / tasks, rows * (task + 1) / tasks); });
}

}  // namespace serin::kernels::cpu
