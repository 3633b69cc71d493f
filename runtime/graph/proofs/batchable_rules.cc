// batchable_rules.cc: how the batch axis moves through each operator, for prove_batchable (batchable.cc says what is tracked).
//
// A rule that is not there is a refusal: what an operator does to the batch must have been thought about. Operators that choose one scale for a whole
// tensor (DynamicQuantizeLinear) mix items although their shapes do not show it.

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "runtime/graph/ops/reductions.h"
#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using State = BatchState;
using Outcome = Result<BatchState>;

}  // namespace

Outcome BatchRule::run() const {
  if (is_reduction(node_.op)) return reduce();
  switch (node_.op) {
    case Op::kShape:
    case Op::kSize: return size();
    case Op::kConstantOfShape:
    case Op::kExpand: return expand();
    case Op::kReshape:
    case Op::kFlatten:
    case Op::kSqueeze:
    case Op::kUnsqueeze: return reshape();
    case Op::kMatMul:
    case Op::kGemm:
    case Op::kFusedMatMul:
    case Op::kMatMulInteger: return product(0, 1, 2);
    case Op::kQLinearMatMul:
    case Op::kQuantizedMatMul: return product(0, 3, 6);
    case Op::kMatMulNBits: return rows_of_table();
    case Op::kCausalConvWithState:
    case Op::kLinearAttention: return per_item();
    case Op::kAttention: return attention();
    case Op::kEinsum: return einsum();
    case Op::kGridSample: return per_item();
    case Op::kSTFT: return signal();
    case Op::kRotaryEmbedding: return rotary();
    case Op::kConv:
    case Op::kConvInteger:
    case Op::kFusedConv:
    case Op::kQLinearConv:
    case Op::kQuantizedGlobalAveragePool:
    case Op::kQuantizedMaxPool:
    case Op::kAveragePool:
    case Op::kMaxPool:
    case Op::kGlobalAveragePool:
    case Op::kGlobalMaxPool:
    case Op::kBatchNormalization:
    case Op::kConvTranspose:
    case Op::kDepthToSpace:
    case Op::kGlobalLpPool:
    case Op::kGroupNormalization:
    case Op::kInstanceNormalization:
    case Op::kLRN:
    case Op::kLpPool:
    case Op::kSpaceToDepth: return image();
    case Op::kResize: return resize();
    case Op::kGRU:
    case Op::kLSTM:
    case Op::kRNN: return recurrent();
    case Op::kPRelu:
    case Op::kQuantizedLookup:
    case Op::kDequantizeLinear:
    case Op::kQuantizeLinear: return elements_with_parameters();
    case Op::kImputer:
    case Op::kLinearClassifier:
    case Op::kLinearRegressor:
    case Op::kNormalizer:
    case Op::kSVMClassifier:
    case Op::kSVMRegressor:
    case Op::kScaler:
    case Op::kTreeEnsemble:
    case Op::kTreeEnsembleClassifier:
    case Op::kTreeEnsembleRegressor: return table();
    case Op::kArrayFeatureExtractor: return state(1).is_rows() ? listed() : rows_before_the_end();
    case Op::kOneHot:
    case Op::kOneHotEncoder:
    case Op::kTrilu: return rows_before_the_end();
    case Op::kFeatureVectorizer:
    case Op::kConcat: return concat();
    case Op::kGatherElements: return gather_elements();
    case Op::kGather: return gather();
    case Op::kGatherND: return gather_nd();
    case Op::kTranspose: return transpose();
    case Op::kSlice:
    case Op::kSplit:
    case Op::kPad:
    case Op::kTile: return !state(0).is_rows() && state(1).is_size() ? expand() : keeps_batch_whole();
    case Op::kSoftmax:
    case Op::kLogSoftmax:
    case Op::kHardmax:
    case Op::kLpNormalization:
    case Op::kTopK:
    case Op::kCumSum:
    case Op::kRMSNormalization:
    case Op::kLayerNormalization: return along_axis();
    case Op::kArgMax:
    case Op::kArgMin: return reduce();
    case Op::kIf:
    case Op::kLoop:
    case Op::kNonZero:
    case Op::kRange: return refuse("depends on the whole batch");
    case Op::kDynamicQuantizeMatMul:
      if (node_.integer("by_row", 0) != 0) return product(0, 1, 4);
      [[fallthrough]];
    case Op::kDynamicQuantizeLinear: return refuse("quantises the whole batch with one scale");
    case Op::kMaxPoolWithIndices: return refuse("counts places from the first item of the batch");
    case Op::kQuantizedBinary:
      return quantised_binary();
      // clang-format off
    case Op::kAbs: case Op::kAcos: case Op::kAcosh: case Op::kAdd: case Op::kAnd: case Op::kAsin: case Op::kAsinh: case Op::kAtan:
    case Op::kAtanh: case Op::kBinarizer: case Op::kBitShift: case Op::kBitwiseAnd: case Op::kBitwiseNot: case Op::kBitwiseOr:
    case Op::kBitwiseXor: case Op::kCast: case Op::kCeil: case Op::kCelu: case Op::kClip: case Op::kCos: case Op::kCosh: case Op::kDiv:
    case Op::kElu: case Op::kEqual: case Op::kErf: case Op::kExp: case Op::kFloor: case Op::kGelu: case Op::kGreater:
    case Op::kGreaterOrEqual: case Op::kHardSigmoid: case Op::kHardSwish: case Op::kIdentity: case Op::kIsInf: case Op::kIsNaN:
    case Op::kLabelEncoder: case Op::kLeakyRelu: case Op::kLess: case Op::kLessOrEqual: case Op::kLog: case Op::kMax: case Op::kMean: case Op::kMin:
    case Op::kMish: case Op::kMod: case Op::kMul: case Op::kNeg: case Op::kNot: case Op::kOr: case Op::kPow: case Op::kReciprocal:
    case Op::kRelu: case Op::kRound: case Op::kSelu: case Op::kShrink: case Op::kSigmoid: case Op::kSign: case Op::kSin: case Op::kSinh:
    case Op::kSoftplus: case Op::kSoftsign: case Op::kSqrt: case Op::kSub: case Op::kSum: case Op::kSwish: case Op::kTan: case Op::kTanh:
    case Op::kThresholdedRelu: case Op::kWhere: case Op::kXor:
      return elementwise(all_operands());
      // clang-format on
    default: return refuse("is not known to keep the items of a batch apart");
  }
}

/// Operands from `first` on must not depend on the batch.
Status BatchRule::rest_is_same(size_t first) const {
  for (size_t i = first; i < node_.inputs.size(); ++i) {
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
  }
  return {};
}

std::vector<size_t> BatchRule::all_operands() const {
  std::vector<size_t> all(node_.inputs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

/// Broadcasting aligns the last axes: where those of the operands that have rows meet, they must agree.
Outcome BatchRule::elementwise(std::span<const size_t> operands) const {
  std::optional<State> rows;
  bool sizes = false;
  const auto rank = static_cast<int64_t>(result_dims().size());
  for (const size_t i : operands) {
    const State& each = state(i);
    sizes |= each.is_size();
    if (!each.is_rows()) continue;
    const State there = State::rows(each.axis + rank - static_cast<int64_t>(dims(i).size()), each.block);
    if (rows && (rows->axis != there.axis || !(rows->block == there.block))) return refuse("brings different axes of the batch together");
    rows = there;
  }
  if (rows && sizes) return refuse("computes with the size of the batch");
  if (rows) return *rows;
  return sizes ? size() : State{};
}

/// PRelu, QuantizeLinear and its inverse, tables of 256 bytes: functions of an element of x and of parameters that do not tell the items apart.
Outcome BatchRule::elements_with_parameters() const {
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  const auto rank = static_cast<int64_t>(dims(0).size());
  for (size_t i = 1; i < node_.inputs.size(); ++i) {
    const bool own_rows =
        state(i).is_rows() && dims(i).size() == dims(0).size() && state(i).axis == state(0).axis && state(i).block == state(0).block;
    if (own_rows && node_.op != Op::kPRelu) continue;  // a scale for each block of each item
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    if (node_.inputs[i] == kNone || graph::product(dims(i)) == Dim(1)) continue;
    const auto own = static_cast<int64_t>(dims(i).size());
    const bool along = node_.op != Op::kPRelu && own == 1;  // one parameter for each place on "axis"
    const int64_t there = along ? 0 : state(0).axis - (rank - own);
    const bool apart =
        along ? axis_attribute(1, dims(0).size()) != state(0).axis : there < 0 || dims(i)[static_cast<size_t>(there)] == Dim(1);
    if (!apart) return refuse(fmt::format("operand {} differs along the batch axis", i));
  }
  return state(0);
}

/// One answer for each row of x [n, features].
Outcome BatchRule::table() const {
  if (dims(0).size() != 2 || !state(0).is_rows() || state(0).axis != 0)
    return refuse("has the batch elsewhere than in the rows of a table");
  return state(0);
}

/// a, scale, zero point, b, scale, zero point, scale and zero point of the result.
Outcome BatchRule::quantised_binary() const {
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
  }
  constexpr size_t kOperands[] = {0, 3};
  return elementwise(kOperands);
}

Result<BatchState> batch_rule(const BatchFacts& facts, const Node& node, size_t result) { return BatchRule(facts, node, result).run(); }

}  // namespace serin::graph
