// eval_store.h: where an evaluation keeps its blocks, so that the next run of the same one finds them.
#pragma once

#include <memory>
#include <string>

#include "runtime/cli/offline/block_store.h"
#include "runtime/cli/offline/shard.h"

namespace serin::cli {

/// In `work`, else next to `out`, else in the user's cache; both may be empty. Errors: those of BlockStore::open().
Result<std::unique_ptr<BlockStore>> open_eval_store(const std::string& work, const std::string& out, const std::string& description,
                                                    const Shard& shard);

}  // namespace serin::cli
