// shard.h: the part of a run that one process does. Rows are cut into blocks, and a shard is a range of whole blocks, so that the blocks
// are the same however many shards there are.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::cli {

struct Shard {
  int64_t number = 1, count = 1;

  bool whole() const { return count == 1; }
  int64_t first(int64_t blocks) const { return part(blocks, number - 1); }
  int64_t last(int64_t blocks) const { return part(blocks, number); }  ///< behind its last one

 private:
  /// blocks * k / count without overflow.
  int64_t part(int64_t blocks, int64_t k) const { return blocks / count * k + blocks % count * k / count; }
};

/// "2/8": the second of eight.
Result<Shard> parse_shard(std::string_view text);

}  // namespace serin::cli
