#include "runtime/cli/offline/block_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

namespace serin::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The state of one run of compute_blocks. Blocks are given out in their order, so all blocks before a given one have been given out.
class Computation {
 public:
  Computation(const BlockRun& run, BlockStore& store)
      : run_(run), store_(store), last_(run.shard.last(run.blocks())), next_(run.shard.first(run.blocks())) {
    for (int64_t block = next_; block < last_; ++block) {
      all_ += run.rows_of(block);
      if (store.has(block)) kept_ += run.rows_of(block);
    }
  }

  void work(const ComputeBlock& compute) {
    while (!failed_) {
      const int64_t block = next_.fetch_add(1);
      if (block >= last_) return;
      if (store_.has(block)) continue;
      const auto payload = compute(run_.first_row(block), run_.rows_of(block));
      const Status done = payload ? store_.append(block, *payload) : Status(payload.error());
      if (!done) fail(block, done.error());
      done_ += run_.rows_of(block);
    }
  }

  /// Until all threads have ended.
  void show(const std::atomic<int>& running) const {
    const bool terminal = run_.progress && ::isatty(STDERR_FILENO) == 1;
    const auto began = Clock::now();
    auto shown = began;
    while (running > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(terminal ? 50 : 5));
      const auto now = Clock::now();
      if (!terminal || now - shown < std::chrono::milliseconds(500)) continue;
      shown = now;
      const double seconds = std::chrono::duration<double>(now - began).count();
      std::fprintf(stderr, "\r\x1b[K%s", progress_line(kept_ + done_, all_, done_, seconds).c_str());
    }
    if (terminal) std::fputs("\r\x1b[K", stderr);
  }

  Status outcome() const {
    const MutexLock lock(mutex_);
    return error_ ? Status(*error_) : Status();
  }

 private:
  void fail(int64_t block, const Error& error) {
    const MutexLock lock(mutex_);
    if (!error_ || block < failed_block_) {
      error_ = error;
      failed_block_ = block;
    }
    failed_ = true;
  }

  const BlockRun& run_;
  BlockStore& store_;
  const int64_t last_;
  std::atomic<int64_t> next_, done_ = 0;
  std::atomic<bool> failed_ = false;
  int64_t all_ = 0, kept_ = 0;
  mutable Mutex mutex_;
  std::optional<Error> error_ SERIN_GUARDED_BY(mutex_);
  int64_t failed_block_ SERIN_GUARDED_BY(mutex_) = 0;
};

}  // namespace

Status compute_blocks(const BlockRun& run, BlockStore& store, const std::function<ComputeBlock()>& worker) {
  Computation computation(run, store);
  std::atomic<int> running = run.threads;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(run.threads));
  for (int i = 0; i < run.threads; ++i) {
    threads.emplace_back([&] {
      computation.work(worker());
      --running;
    });
  }
  computation.show(running);
  for (std::thread& thread : threads) thread.join();
  return computation.outcome();
}

std::string progress_line(int64_t done, int64_t all, int64_t done_now, double seconds) {
  constexpr size_t kWidth = 30;
  const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 1;
  const auto filled = static_cast<size_t>(share * kWidth);
  const double speed = seconds > 0 ? static_cast<double>(done_now) / seconds : 0;
  std::string line =
      fmt::format("{:3.0f} %  [{}{}]  {} of {} rows", share * 100, std::string(filled, '='), std::string(kWidth - filled, ' '), done, all);
  if (speed <= 0) return line;
  const auto left = std::llround(static_cast<double>(all - done) / speed);
  line += fmt::format("  {:.0f} rows/s  ", speed);
  if (left >= 3600) return line + fmt::format("{} h {} min left", left / 3600, left % 3600 / 60);
  if (left >= 60) return line + fmt::format("{} min {} s left", left / 60, left % 60);
  return line + fmt::format("{} s left", left);
}

}  // namespace serin::cli
