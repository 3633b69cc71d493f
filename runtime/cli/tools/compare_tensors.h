// compare_tensors.h: tensors of two versions of a model, paired by their names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/tools/compare.h"
#include "runtime/protocol/infer.h"

namespace serin::cli {

/// A tensor of both versions, or of one of them.
struct TensorDifference {
  std::string name;
  std::string step;  ///< the one that makes it, in the reference if it has one; empty: none does
  Comparison comparison;
};

struct NamedTensors {
  std::span<const protocol::TensorSpec> specs;
  std::span<const TensorView> tensors;
};

/// The index of the tensor of that name.
std::optional<size_t> place_of(std::span<const protocol::TensorSpec> specs, std::string_view name);

/// Of each tensor of the reference, then of those that only the candidate has. Tensors of another name are partners at the same place, if no
/// other has that name. JSON in texts is equal where its numbers are within the tolerance.
std::vector<TensorDifference> compare_tensors(const NamedTensors& reference, const NamedTensors& candidate, const Tolerance& tolerance);

/// For each tensor of the candidate the index of that of the reference: by name, or by place where the names differ. kInvalidArgument: their
/// numbers or types differ.
Result<std::vector<size_t>> order_of(std::span<const protocol::TensorSpec> candidate, std::span<const protocol::TensorSpec> reference);

}  // namespace serin::cli
