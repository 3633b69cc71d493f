#include "runtime/cli/offline/shard.h"

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace serin::cli {

Result<Shard> parse_shard(std::string_view text) {
  constexpr int64_t kMostShards = 1'000'000;
  const size_t slash = std::min(text.find('/'), text.size());
  const auto number = parse_number<int64_t>(text.substr(0, slash));
  const auto count = parse_number<int64_t>(text.substr(std::min(slash + 1, text.size())));
  if (!number || !count || *count < 1 || *count > kMostShards || *number < 1 || *number > *count)
    return invalid(
        fmt::format("--shard {}: must be NUMBER/COUNT, from 1/{} to {}/{}", text, count.value_or(8), count.value_or(8), count.value_or(8)));
  return Shard{*number, *count};
}

}  // namespace serin::cli
