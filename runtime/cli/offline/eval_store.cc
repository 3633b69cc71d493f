#include "runtime/cli/offline/eval_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "runtime/base/cache_folder.h"

namespace serin::cli {
namespace {

/// Without --work and --out: a folder that the next run of the same evaluation finds.
std::string kept_in(const std::string& description) {
  const std::string cache = cache_folder(), parent = cache.empty() ? "serin" : cache;
  std::error_code ignored;  // the store says why it cannot be opened
  std::filesystem::create_directories(parent, ignored);
  return fmt::format("{}/eval-{:016x}", parent, std::hash<std::string>{}(description));
}

}  // namespace

Result<std::unique_ptr<BlockStore>> open_eval_store(const std::string& work, const std::string& out, const std::string& description,
                                                    const Shard& shard) {
  if (!work.empty()) return BlockStore::open(work, description, shard);
  if (!out.empty()) return BlockStore::open(out + ".work", description, shard);
  const std::string folder = kept_in(description);
  auto store = BlockStore::open(folder, description, shard);
  // Nobody named that folder, so two such runs at the same time are no mistake.
  if (!store && store.error().code == Code::kFailedPrecondition)
    return BlockStore::open(fmt::format("{}-{}", folder, ::getpid()), description, shard);
  return store;
}

}  // namespace serin::cli
