// strings.cc: runs operators on strings. Every string is replaced by its rank among all strings of the operands, and the operator runs on
// these numbers. The numbers in its result become strings again. Equal strings have equal numbers in the order of the strings, so Equal,
// Where and even a sorted Unique need no code of their own.

#include "runtime/engine/interpret/strings.h"

#include <algorithm>
#include <string_view>

#include "runtime/engine/value.h"

namespace serin::engine {

namespace {

using enum graph::Op;
using graph::ConstantPtr;

/// Result 0 holds elements of the operands.
constexpr graph::Op kMoves[] = {kCompress, kConcat,  kExpand,          kFlatten,         kGather,    kGatherElements, kGatherND,
                                kIdentity, kReshape, kReverseSequence, kScatterElements, kScatterND, kSlice,          kSplit,
                                kSqueeze,  kTile,    kTranspose,       kTrilu,           kUnique,    kUnsqueeze,      kWhere};
/// No result does.
constexpr graph::Op kLooks[] = {kEqual, kShape, kSize};

bool moves(graph::Op op) { return std::ranges::find(kMoves, op) != std::end(kMoves); }

std::vector<std::string_view> dictionary_of(std::span<const ConstantPtr> operands) {
  std::vector<std::string_view> words;
  for (const ConstantPtr& operand : operands) {
    if (operand) words.insert(words.end(), operand->strings.begin(), operand->strings.end());
  }
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  return words;
}

ConstantPtr numbers_of(const graph::Constant& strings, const std::vector<std::string_view>& words) {
  const FreshTensor fresh = fresh_tensor(DType::kInt64, strings.shape);
  auto* number = fresh.view.as<int64_t>();
  for (const std::string& text : strings.strings) *number++ = std::ranges::lower_bound(words, std::string_view(text)) - words.begin();
  return fresh.tensor;
}

Result<ConstantPtr> strings_of(const graph::Constant& numbers, const std::vector<std::string_view>& words) {
  const FreshTensor fresh = fresh_tensor(DType::kString, numbers.shape);
  const auto from = numbers.span<int64_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0 || static_cast<uint64_t>(from[i]) >= words.size()) return Error{Code::kInvalidArgument, "computes with strings"};
    fresh.tensor->strings[i] = words[static_cast<size_t>(from[i])];
  }
  return ConstantPtr(fresh.tensor);
}

}  // namespace

bool moves_strings(graph::Op op) { return moves(op) || std::ranges::find(kLooks, op) != std::end(kLooks); }

Result<std::vector<ConstantPtr>> move_strings(const graph::Node& node, std::span<const ConstantPtr> operands,
                                              const Plan::Context& context) {
  const std::vector<std::string_view> words = dictionary_of(operands);
  graph::Graph alone;
  std::vector<graph::ValueId> inputs;
  for (const ConstantPtr& operand : operands) {
    if (!operand) {
      inputs.push_back(graph::kNone);
      continue;
    }
    inputs.push_back(alone.add_constant("operand " + std::to_string(inputs.size()),
                                        operand->dtype == DType::kString ? numbers_of(*operand, words) : operand));
  }
  const graph::NodeId id = alone.add_node(node.op, node.name, std::move(inputs), node.attributes, node.outputs.size());
  SERIN_CHECK(graph::infer_shapes(alone));
  SERIN_TRY(std::vector<ConstantPtr> results, context.folder.evaluate(alone, id, context.max_arena_bytes));
  const size_t moved = node.op == kUnique ? 1 : results.size();  // its other results are positions and counts
  for (size_t i = 0; moves(node.op) && i < std::min(moved, results.size()); ++i) {
    if (!results[i]) continue;
    SERIN_TRY(results[i], strings_of(*results[i], words));
  }
  return results;
}

}  // namespace serin::engine
