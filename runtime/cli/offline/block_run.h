// block_run.h: computes the blocks of a shard on several threads, into a BlockStore, and shows how far it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/cli/offline/block_store.h"
#include "runtime/cli/offline/shard.h"

namespace serin::cli {

struct BlockRun {
  int64_t rows = 0, rows_in_block = 1;
  Shard shard;
  int threads = 1;
  bool progress = true;  ///< on a terminal

  int64_t blocks() const { return (rows + rows_in_block - 1) / rows_in_block; }
  int64_t first_row(int64_t block) const { return block * rows_in_block; }
  int64_t rows_of(int64_t block) const { return std::min(rows_in_block, rows - first_row(block)); }
};

/// Computes the payload of a block of rows.
using ComputeBlock = std::function<Result<std::string>(int64_t first, int64_t count)>;

/// `worker` is called on each thread and makes its own function. Blocks that the store has are left out. An error ends the run after the
/// blocks that have begun. The one of the first block counts, so that the message is the same with any number of threads.
Status compute_blocks(const BlockRun& run, BlockStore& store, const std::function<ComputeBlock()>& worker);

/// "45 %  [=====     ]  12800 of 28000 rows  5312 rows/s  3 s left".
std::string progress_line(int64_t done, int64_t all, int64_t done_now, double seconds);

}  // namespace serin::cli
