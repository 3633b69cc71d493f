#include "runtime/protocol/tensor/tensor_names.h"

namespace serin::protocol {
namespace {

constexpr size_t kMostListed = 8;

}  // namespace

std::string list_names(std::span<const TensorSpec> specs) {
  std::string listed;
  for (const TensorSpec& spec : specs.first(std::min(specs.size(), kMostListed)))
    listed += fmt::format("{}'{}'", listed.empty() ? "" : ", ", spec.name);
  if (specs.size() > kMostListed) listed += fmt::format(" and {} more", specs.size() - kMostListed);
  return listed;
}

std::string names_instead_of(std::string_view unknown, std::span<const TensorSpec> specs) {
  if (specs.empty()) return "; it has none";
  std::vector<std::string_view> names;
  names.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    names.emplace_back(spec.name);
    if (!spec.alias.empty()) names.emplace_back(spec.alias);
  }
  const std::string meant = did_you_mean(unknown, names);
  return fmt::format("{} {} has {}", meant.empty() ? ";" : meant, meant.empty() ? "it" : "It", list_names(specs));
}

}  // namespace serin::protocol
