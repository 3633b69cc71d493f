// tensor_names.h: what a message says of a tensor that a model does not have: which one may be meant, and which there are.
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

/// "'a', 'b' and 12 more": models of tables have a thousand, and gRPC cuts a message off after 2 KB.
std::string list_names(std::span<const TensorSpec> specs);

/// "; did you mean 'scores'? It has 'scores', 'labels'" of a name that none of them has; where none is near, "; it has ...".
std::string names_instead_of(std::string_view unknown, std::span<const TensorSpec> specs);

/// "; did you mean it by 'scroes'?" of a tensor that is missing where these names were given: those that are none of the model's.
template <class Names>
std::string given_instead_of(std::string_view missing, std::span<const TensorSpec> specs, const Names& given) {
  std::vector<std::string_view> unknown;
  for (const std::string_view name : given)
    if (std::ranges::find(specs, name, &TensorSpec::name) == specs.end()) unknown.push_back(name);
  const std::string_view meant = nearest_name(missing, unknown);
  return meant.empty() ? std::string() : fmt::format("; did you mean it by '{}'?", meant);
}

}  // namespace serin::protocol
