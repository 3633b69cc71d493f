// batchable_rules.cc: how the batch axis moves through each operator, for prove_batchable (batchable.cc says what is tracked).
//
// A rule that is not there is a refusal: what an operator does to the batch must have been thought about. Operators that choose one scale for a whole
// tensor (DynamicQuantizeLinear) mix items although their shapes do not show it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>

#include "runtime/graph/batchable.h"
#include "runtime/graph/ops/einsum.h"
#include "runtime/graph/ops/reductions.h"

namespace serin::graph {
namespace {

using State = BatchState;
using Outcome = Result<State>;

/// m where dim = batch * m; nothing where it is not such a product.
std::optional<Dim> block_of(const Dim& dim, const std::string& symbol) {
  const Dim batch = Dim::symbol(symbol);
  const Dim block = floor_div(dim, batch);
  return !mentions(block, symbol) && block * batch == dim ? std::optional(block) : std::nullopt;
}

class Rule {
 public:
  Rule(const BatchFacts& facts, const Node& node, size_t result)
      : graph_(facts.graph), node_(node), states_(facts.states), values_(facts.values), symbol_(facts.symbol), result_(result) {}

  Outcome run() const {
    if (is_reduction(node_.op)) return reduce();
    switch (node_.op) {
      case Op::kShape:
      case Op::kSize: return State{State::Kind::kSize, 0, 1};
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
      case Op::kArrayFeatureExtractor:
      case Op::kOneHot:
      case Op::kTrilu: return rows_before_the_end();
      case Op::kFeatureVectorizer:
      case Op::kConcat: return concat();
      case Op::kGatherElements: return gather_elements();
      case Op::kGather: return gather();
      case Op::kTranspose: return transpose();
      case Op::kSlice:
      case Op::kSplit:
      case Op::kPad:
      case Op::kTile: return keeps_batch_whole();
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

 private:
  static Error refuse(std::string why) { return {Code::kFailedPrecondition, std::move(why)}; }
  static constexpr State::Kind kSize = State::Kind::kSize;

  const State& state(size_t operand) const {
    static const State same;
    const ValueId id = operand < node_.inputs.size() ? node_.inputs[operand] : kNone;
    return id == kNone ? same : states_[static_cast<size_t>(id)];
  }
  const Dims& dims(size_t operand) const { return *graph_.value(node_.inputs[operand]).type.shape; }
  const Dims& result_dims() const { return *graph_.value(node_.outputs[result_]).type.shape; }

  /// Operands from `first` on must not depend on the batch.
  Status rest_is_same(size_t first) const {
    for (size_t i = first; i < node_.inputs.size(); ++i) {
      if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    }
    return {};
  }

  std::vector<size_t> all_operands() const {
    std::vector<size_t> all(node_.inputs.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }

  int64_t axis_attribute(int64_t fallback, size_t rank) const {
    const int64_t axis = node_.integer("axis", fallback);
    return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  }

  /// Broadcasting aligns the last axes: where those of the operands that have rows meet, they must agree.
  Outcome elementwise(std::span<const size_t> operands) const {
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
    return sizes ? State{kSize, 0, 1} : State{};
  }

  /// A tensor that is repeated to a shape with the batch in it has the same rows everywhere.
  Outcome expand() const {
    const size_t target = node_.op == Op::kExpand ? 1 : 0;
    if (state(target).is_rows()) return refuse("its shape depends on the contents of the batch");
    if (node_.op == Op::kExpand && state(0).is_size()) return State{kSize, 0, 1};
    if (node_.op == Op::kExpand && state(0).is_rows()) return elementwise(std::array<size_t, 1>{0});
    const Dims& to = result_dims();
    std::optional<State> rows;
    for (size_t axis = 0; axis < to.size(); ++axis) {
      if (!mentions(to[axis], symbol_)) continue;
      const auto block = block_of(to[axis], symbol_);
      if (!block || rows) return refuse(fmt::format("makes shape {}, in which the batch is not one axis", print(to)));
      rows = State::rows(static_cast<int64_t>(axis), *block);
    }
    if (rows) return *rows;
    return integers(node_.outputs[0]) ? State{kSize, 0, 1} : State{};
  }

  bool integers(ValueId id) const { return values_[static_cast<size_t>(id)].has_value(); }

  /// The elements stay in order, so an item stays together where an axis of the result starts at the same multiple: as many elements
  /// before it, batch * block' of its own.
  Outcome reshape() const {
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (state(i).is_rows()) return refuse("its shape depends on the contents of the batch");
    }
    if (!state(0).is_rows()) return state(0).is_size() ? Outcome(State{kSize, 0, 1}) : Outcome(State{});
    const Dims &from = dims(0), &to = result_dims();
    const Dim before = graph::product(from, 0, static_cast<size_t>(state(0).axis));
    for (size_t axis = 0; axis < to.size(); ++axis) {
      if (!mentions(to[axis], symbol_)) continue;
      const auto block = block_of(to[axis], symbol_);
      const bool starts_alike = graph::product(to, 0, axis) == before, complete = graph::product(to) == graph::product(from);
      if (block && starts_alike && complete) return State::rows(static_cast<int64_t>(axis), *block);
      break;
    }
    return refuse(fmt::format("reshapes {} to {}, which mixes the batch with other axes", print(from), print(to)));
  }

  /// Operands a and b of the node; what stands between them and before `last` is parameters, the rest broadcasts to the result.
  Outcome product(size_t a, size_t b, size_t last) const {
    const auto rank_a = static_cast<int64_t>(dims(a).size()), rank_b = static_cast<int64_t>(dims(b).size());
    const auto rank = static_cast<int64_t>(result_dims().size());
    if (state(a).is_size() || state(b).is_size()) return refuse("computes with the size of the batch");
    std::optional<State> rows;
    if (state(a).is_rows()) {
      const bool transposed = node_.integer("transA", 0) != 0;
      const int64_t inner = transposed && rank_a > 1 ? rank_a - 2 : rank_a - 1;
      if (state(a).axis == inner) return refuse("sums over the batch axis");
      // Counted from the end, as the leading axes broadcast; the row axis is the last but one of the result, or the last if b is a vector.
      int64_t from_end = rank_a - state(a).axis;
      if (transposed && from_end == 1) from_end = 2;
      rows = State::rows(rank - (rank_b == 1 ? from_end - 1 : from_end), state(a).block);
    }
    if (state(b).is_rows()) {
      if (state(b).axis >= rank_b - 2) return refuse("multiplies by a matrix with the batch in its rows or columns");
      const State there = State::rows(rank - (rank_b - state(b).axis) + (rank_a == 1 ? 1 : 0), state(b).block);
      if (rows && (rows->axis != there.axis || !(rows->block == there.block))) return refuse("brings different axes of the batch together");
      rows = there;
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (i == a || i == b || node_.inputs[i] == kNone || state(i).is_same()) continue;
      const int64_t axis = state(i).axis + rank - static_cast<int64_t>(dims(i).size());
      if (i < last || !state(i).is_rows() || !rows || axis != rows->axis || !(state(i).block == rows->block))
        return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    if (!rows) return refuse("computes with the size of the batch");
    return *rows;
  }

  /// MatMulNBits: x [..., k] with packed weights.
  Outcome rows_of_table() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return refuse("computes with the size of the batch");
    if (state(0).axis + 1 == static_cast<int64_t>(dims(0).size())) return refuse("sums over the batch axis");
    return state(0);
  }

  /// Operand i has the batch, one item a row, on its first axis.
  bool first_axis(size_t i) const { return state(i).is_rows() && state(i).axis == 0 && state(i).block == state(0).block; }

  /// GridSample, LinearAttention, CausalConvWithState: item i of the result is a function of item i of every operand that has the batch at all.
  Outcome per_item() const {
    const bool all_have_it = node_.op != Op::kCausalConvWithState;  // whose filter and bias do not
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone) continue;
      const bool parameter = !all_have_it && (i == 1 || i == 2);
      if (parameter ? !state(i).is_same() : !first_axis(i)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return state(0);
  }

  /// q, k, v, mask, past keys, past values, lengths: all have the batch first, but for a mask that is the same for every item.
  Outcome attention() const {
    constexpr size_t kMask = 3;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone || (i == kMask && state(i).is_same() && !tells_items_apart(i, 4))) continue;
      if (i == kMask && dims(i).size() != 4) return refuse("has a mask with the batch elsewhere");
      if (!first_axis(i)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return state(0);
  }

  /// Whether operand i, broadcast to `rank` axes, has a first axis of more than one element.
  bool tells_items_apart(size_t i, size_t rank) const { return dims(i).size() >= rank && !(dims(i).front() == Dim(1)); }

  /// x, cos, sin, positions. The tables have a row for each position, or for each position of each item.
  Outcome rotary() const {
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone) continue;
      const bool fits = first_axis(i) || ((i == 1 || i == 2) && state(i).is_same() && node_.inputs.size() > 3 && node_.inputs[3] != kNone);
      if (!fits) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return state(0);
  }

  /// The batch has one label, which is on every operand with rows, once, and in the result: nothing is summed over it.
  Outcome einsum() const {
    std::vector<size_t> ranks;
    ranks.reserve(node_.inputs.size());
    for (size_t i = 0; i < node_.inputs.size(); ++i) ranks.push_back(dims(i).size());
    SERIN_TRY(const Einsum equation, parse_einsum(node_.text("equation", ""), ranks));
    char label = 0;
    Dim block = 1;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (state(i).is_size()) return refuse("computes with the size of the batch");
      if (!state(i).is_rows()) continue;
      const char own = equation.operands[i][static_cast<size_t>(state(i).axis)];
      if (label != 0 && (own != label || !(state(i).block == block))) return refuse("brings different axes of the batch together");
      label = own;
      block = state(i).block;
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const auto times = std::ranges::count(equation.operands[i], label);
      if (times != (state(i).is_rows() ? 1 : 0)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    const size_t axis = equation.result.find(label);
    if (axis == std::string::npos) return refuse("sums over the batch axis");
    return State::rows(static_cast<int64_t>(axis), block);
  }

  /// x [n, c, spatial...] or [n, spatial..., c] with parameters; fused convolutions add a residual of the result's shape.
  Outcome image() const {
    const size_t residual = node_.op == Op::kFusedConv ? 3 : node_.op == Op::kQLinearConv ? 9 : node_.inputs.size();
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (i == residual) continue;
      if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    }
    if (!state(0).is_rows() || state(0).axis != 0) return refuse("has the batch elsewhere than on its first axis");
    const bool added = residual < node_.inputs.size() && node_.inputs[residual] != kNone;
    if (added && !first_axis(residual)) return refuse("adds a residual with the batch elsewhere");
    return state(0);
  }

  /// Each axis is sampled by itself; the shape says whether the batch keeps its size, and so every item its place.
  Outcome resize() const {
    if (!state(0).is_rows()) return refuse("computes with the size of the batch");
    if (node_.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return refuse("may cut the batch axis");
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (state(i).is_rows()) return refuse("its shape depends on the contents of the batch");
    }
    return state(0);
  }

  /// x [steps, batch, features], states [directions, batch, hidden], lengths [batch]; with layout 1 the batch is first everywhere.
  Outcome recurrent() const {
    constexpr size_t kX = 0, kLengths = 4, kState = 5, kCell = 6;
    const bool batch_first = node_.integer("layout", 0) != 0;
    const int64_t axis = batch_first ? 0 : 1;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone) continue;
      const bool is_batch = i == kX || i == kLengths || i == kState || i == kCell;
      if (!is_batch && !state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
      if (!is_batch) continue;
      const bool fits = state(i).is_rows() && state(i).axis == (i == kLengths ? 0 : axis) && state(i).block == state(kX).block;
      if (!fits) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return State::rows(batch_first ? 0 : result_ == 0 ? 2 : 1, state(kX).block);
  }

  /// PRelu, QuantizeLinear and its inverse, tables of 256 bytes: functions of an element of x and of parameters that do not tell the items apart.
  Outcome elements_with_parameters() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return refuse("computes with the size of the batch");
    const auto rank = static_cast<int64_t>(dims(0).size());
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
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
  Outcome table() const {
    if (dims(0).size() != 2 || !state(0).is_rows() || state(0).axis != 0)
      return refuse("has the batch elsewhere than in the rows of a table");
    return state(0);
  }

  Outcome concat() const {
    if (std::ranges::none_of(node_.inputs, [&](ValueId id) { return states_[static_cast<size_t>(id)].is_rows(); }))
      return State{kSize, 0, 1};
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (!state(i).is_rows() || state(i).axis != state(0).axis || !(state(i).block == state(0).block))
        return refuse("joins parts with and without the batch");
    }
    if (axis_attribute(0, dims(0).size()) == state(0).axis) return refuse("concatenates along the batch axis");
    return state(0);
  }

  Outcome gather() const {
    const int64_t axis = axis_attribute(0, dims(0).size());
    if (state(0).is_size())
      return state(1).is_rows() ? Outcome(refuse("computes with the size of the batch")) : Outcome(State{kSize, 0, 1});
    if (state(1).is_size()) return refuse("computes with the size of the batch");
    if (state(0).is_rows() && state(1).is_rows()) return refuse("looks up in one item what another may ask for");
    if (state(1).is_rows()) return State::rows(axis + state(1).axis, state(1).block);  // an embedding
    if (axis == state(0).axis) return refuse("picks items of the batch");
    const auto added = static_cast<int64_t>(dims(1).size()) - 1;
    return State::rows(state(0).axis + (axis < state(0).axis ? added : 0), state(0).block);
  }

  /// Each index looks along `axis` at its own place of the other axes.
  Outcome gather_elements() const {
    if (!state(0).is_rows() || !state(1).is_rows() || state(1).axis != state(0).axis || !(state(0).block == state(1).block))
      return refuse("looks up in one item what another may ask for");
    if (axis_attribute(0, dims(0).size()) == state(0).axis) return refuse("picks items of the batch");
    return state(0);
  }

  /// a, scale, zero point, b, scale, zero point, scale and zero point of the result.
  Outcome quantised_binary() const {
    for (const size_t i : {1, 2, 4, 5, 6, 7}) {
      if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    }
    constexpr size_t kOperands[] = {0, 3};
    return elementwise(kOperands);
  }

  /// OneHot puts an axis somewhere, Trilu looks at the last two axes, ArrayFeatureExtractor at the last one.
  Outcome rows_before_the_end() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return refuse("computes with the size of the batch");
    const auto rank = static_cast<int64_t>(dims(0).size());
    if (node_.op == Op::kOneHot) {
      const int64_t added = axis_attribute(-1, dims(0).size() + 1);
      return State::rows(state(0).axis + (added <= state(0).axis ? 1 : 0), state(0).block);
    }
    if (state(0).axis >= rank - (node_.op == Op::kTrilu ? 2 : 1)) return refuse("works along the batch axis");
    return state(0);
  }

  Outcome transpose() const {
    if (!state(0).is_rows()) return state(0);
    const auto perm = node_.integers("perm");
    const auto rank = static_cast<int64_t>(dims(0).size());
    if (perm.empty()) return State::rows(rank - 1 - state(0).axis, state(0).block);
    return State::rows(std::ranges::find(perm, state(0).axis) - perm.begin(), state(0).block);
  }

  /// Slice, Split, Pad, Tile: fine along other axes, and where the batch axis comes out as it went in.
  Outcome keeps_batch_whole() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return state(0);
    const auto axis = static_cast<size_t>(state(0).axis);
    const auto touched = node_.integers("axes");
    const auto rank = static_cast<int64_t>(dims(0).size());
    const bool names_it = std::ranges::any_of(touched, [&](int64_t each) { return (each < 0 ? each + rank : each) == state(0).axis; });
    const bool sliced = node_.op == Op::kSlice && (names_it || touched.empty()) &&
                        !std::ranges::all_of(node_.integers("steps"), [](int64_t step) { return step == 1; });
    const bool padded = node_.op == Op::kPad && !pads_leave(axis);
    if (sliced || padded || !(result_dims()[axis] == dims(0)[axis])) return refuse("changes the batch axis");
    return state(0);
  }

  bool pads_leave(size_t axis) const {
    const auto pads = node_.integers("pads");
    if (pads.empty() || !node_.integers("axes").empty()) return false;
    return pads[axis] == 0 && pads[pads.size() / 2 + axis] == 0;
  }

  /// Softmax, TopK, CumSum, LayerNormalization work along one axis, or along all from it on.
  Outcome along_axis() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return state(0);
    int64_t axis = axis_attribute(-1, dims(0).size());
    if (node_.op == Op::kCumSum) {
      const auto& known = values_[static_cast<size_t>(node_.inputs[1])];
      if (!known || known->size() != 1 || !known->front().known()) return refuse("sums along an axis that is not known");
      axis = *known->front().value();
      if (axis < 0) axis += static_cast<int64_t>(dims(0).size());
    }
    const bool to_the_end = node_.op == Op::kLayerNormalization || node_.op == Op::kRMSNormalization;
    const bool hit = to_the_end ? state(0).axis >= axis : state(0).axis == axis;
    return hit ? Outcome(refuse("works along the batch axis")) : Outcome(state(0));
  }

  Outcome reduce() const {
    SERIN_CHECK(rest_is_same(1));
    const bool arg = node_.op == Op::kArgMax || node_.op == Op::kArgMin;
    const auto rank = static_cast<int64_t>(dims(0).size());
    std::vector<int64_t> axes = arg ? std::vector<int64_t>{node_.integer("axis", 0)} : node_.integers("axes");
    if (!arg && node_.inputs.size() > 1 && node_.inputs[1] != kNone) {
      const auto& known = values_[static_cast<size_t>(node_.inputs[1])];
      if (!known) return refuse("reduces axes that are not known");
      for (const Dim& axis : *known) axes.push_back(axis.value().value_or(0));
    }
    if (state(0).is_size()) return state(0);
    if (axes.empty()) return node_.integer("noop_with_empty_axes", 0) != 0 ? Outcome(state(0)) : Outcome(refuse("reduces the batch axis"));
    int64_t before = 0;
    for (const int64_t given : axes) {
      const int64_t axis = given < 0 ? given + rank : given;
      if (axis == state(0).axis) return refuse("reduces the batch axis");
      before += axis < state(0).axis;
    }
    return State::rows(state(0).axis - (node_.integer("keepdims", 1) != 0 ? 0 : before), state(0).block);
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<State>& states_;
  const ShapeValues& values_;
  const std::string& symbol_;
  const size_t result_;
};

}  // namespace

Result<BatchState> batch_rule(const BatchFacts& facts, const Node& node, size_t result) { return Rule(facts, node, result).run(); }

}  // namespace serin::graph
