#include "runtime/cli/serve/serve_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::cli {
namespace {

constexpr size_t kPart = 16;  // of the memory: JSON takes up to 15 times its size while it is read
constexpr size_t kMostShared = INT32_MAX;

}  // namespace

ServeLimits serve_limits(const ServeOptions& options, size_t memory) {
  constexpr auto kEach = static_cast<size_t>(ServeOptions::kOrdinaryBody);
  const auto told = static_cast<size_t>(std::max(options.max_body_bytes.value_or(0), options.max_message_bytes.value_or(0)));
  const size_t part = memory / kPart;
  const size_t all = std::max(part, told - std::min(told, kEach));
  ServeLimits limits;
  limits.bodies = std::make_shared<MemoryBudget>(kEach, all);
  limits.requests.memory = std::make_shared<MemoryBudget>(kEach, all);
  const size_t most = limits.bodies->most();
  const auto port = [&](std::optional<int64_t> asked, int64_t otherwise) {
    const auto wanted = static_cast<size_t>(asked.value_or(otherwise));
    if (wanted <= most) return ServeLimits::Port{wanted, "--max-body-bytes raises that"};
    return ServeLimits::Port{
        most, fmt::format("{} MiB and a sixteenth of the {} MiB of memory; --max-body-bytes raises that", kEach >> 20, memory >> 20)};
  };
  limits.http = port(options.max_body_bytes, options.body_bytes);
  limits.grpc = port(options.max_message_bytes, options.message_bytes);
  limits.admin = port(options.max_body_bytes, ServeOptions::kOrdinaryBody);
  size_t& tensors = limits.requests.tensor_bytes;
  tensors = std::max({tensors, limits.http.body_bytes, limits.grpc.body_bytes, options.shared_memory ? kMostShared : 0});
  tensors = std::min(tensors, most);
  return limits;
}

}  // namespace serin::cli
