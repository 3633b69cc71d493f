// tensor_names.h: messages about a tensor that a model does not have: the name that may be meant, and the existing names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/nearest_name.h"
#include "runtime/protocol/infer.h"

namespace serin::protocol {

/// Returns "'a', 'b' and 12 more": models of tables have a thousand, and gRPC cuts a message after 2 KB.
std::string list_names(std::span<const TensorSpec> specs);

/// Returns "; did you mean 'scores'? It has 'scores', 'labels'" for an unknown name, or "; it has ..." if no name is near.
std::string names_instead_of(std::string_view unknown, std::span<const TensorSpec> specs);

/// Returns "; did you mean it by 'scroes'?" for a missing tensor, if one of the given names is unknown and near.
template <class Names>
std::string given_instead_of(std::string_view missing, std::span<const TensorSpec> specs, const Names& given) {
  std::vector<std::string_view> unknown;
  for (const std::string_view name : given)
    if (std::ranges::find(specs, name, &TensorSpec::name) == specs.end()) unknown.push_back(name);
  const std::string_view meant = nearest_name(missing, unknown);
  return meant.empty() ? std::string() : fmt::format("; did you mean it by '{}'?", meant);
}

}  // namespace serin::protocol
