// prove_batchable: are the rows of a batch independent of each other?
//
// Every value is one of three things, found in one walk from the inputs:
//
//   same    the same whatever the batch holds and however large it is: weights, positions, masks made from constants
//   size    computed from the size of the batch, not from its contents: Shape(x) on its way into a Reshape
//   rows    has the batch on one axis, of size batch * block: item i is what lies at [i * block, (i + 1) * block) of that axis, and depends on
//           item i of the inputs only. `block` is 1 until a Reshape merges the batch with the axis behind it: [batch, seq, 64] -> [batch * seq, 64]
//
// The rules say how the axis moves through an operator, and refuse what would mix items. What they do not know they refuse: a proof that fails
// costs speed, a wrong one would give a client somebody else's answer. After each node its shape is checked, too: the batch symbol must
// occur on the tracked axis, as batch * block, and nowhere else.

#include <algorithm>

#include <fmt/format.h>

#include "runtime/graph/ops/infer.h"

namespace serin::graph {
namespace {

struct State {
  enum class Kind { kSame, kSize, kRows } kind = Kind::kSame;
  int64_t axis = 0;
  Dim block = 1;

  static State rows(int64_t axis, Dim block) { return {Kind::kRows, axis, std::move(block)}; }
  bool is_rows() const { return kind == Kind::kRows; }
  bool is_size() const { return kind == Kind::kSize; }
};

using Outcome = Result<State>;

bool mentions(const Dim& dim, const std::string& symbol) {
  const auto symbols = dim.symbols();
  return std::ranges::find(symbols, symbol) != symbols.end();
}

bool mentions(const Dims& dims, const std::string& symbol) {
  return std::ranges::any_of(dims, [&](const Dim& dim) { return mentions(dim, symbol); });
}

/// m where dim = batch * m; nothing where it is not such a product.
std::optional<Dim> block_of(const Dim& dim, const std::string& symbol) {
  const Dim batch = Dim::symbol(symbol);
  const Dim block = floor_div(dim, batch);
  return !mentions(block, symbol) && block * batch == dim ? std::optional(block) : std::nullopt;
}

/// The rule of one node whose operands are not all the same. Errors hold the reason only: "reduces the batch axis".
class Rule {
 public:
  Rule(const Graph& graph, const Node& node, const std::vector<State>& states, const ShapeValues& values, const std::string& symbol)
      : graph_(graph), node_(node), states_(states), values_(values), symbol_(symbol) {}

  Outcome run(size_t result) const {
    result_ = result;
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
      case Op::kFusedMatMul: return matmul();
      case Op::kConv:
      case Op::kFusedConv:
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
      case Op::kConcat: return concat();
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
      case Op::kArgMin:
      case Op::kReduceL1:
      case Op::kReduceL2:
      case Op::kReduceLogSumExp:
      case Op::kReduceMax:
      case Op::kReduceMean:
      case Op::kReduceMin:
      case Op::kReduceProd:
      case Op::kReduceSum:
      case Op::kReduceSumSquare: return reduce();
      case Op::kIf:
      case Op::kLoop:
      case Op::kNonZero:
      case Op::kRange:
        return refuse("depends on the whole batch");
        // clang-format off
      case Op::kAbs: case Op::kAcos: case Op::kAcosh: case Op::kAdd: case Op::kAnd: case Op::kAsin: case Op::kAsinh: case Op::kAtan:
      case Op::kAtanh: case Op::kBinarizer: case Op::kBitShift: case Op::kBitwiseAnd: case Op::kBitwiseNot: case Op::kBitwiseOr:
      case Op::kBitwiseXor: case Op::kCast: case Op::kCeil: case Op::kCelu: case Op::kClip: case Op::kCos: case Op::kCosh: case Op::kDiv:
      case Op::kElu: case Op::kEqual: case Op::kErf: case Op::kExp: case Op::kFloor: case Op::kGelu: case Op::kGreater:
      case Op::kGreaterOrEqual: case Op::kHardSigmoid: case Op::kHardSwish: case Op::kIdentity: case Op::kIsInf: case Op::kIsNaN:
      case Op::kLeakyRelu: case Op::kLess: case Op::kLessOrEqual: case Op::kLog: case Op::kMax: case Op::kMean: case Op::kMin:
      case Op::kMish: case Op::kMod: case Op::kMul: case Op::kNeg: case Op::kNot: case Op::kOr: case Op::kPow: case Op::kReciprocal:
      case Op::kRelu: case Op::kRound: case Op::kSelu: case Op::kShrink: case Op::kSigmoid: case Op::kSign: case Op::kSin: case Op::kSinh:
      case Op::kSoftplus: case Op::kSoftsign: case Op::kSqrt: case Op::kSub: case Op::kSum: case Op::kSwish: case Op::kTan: case Op::kTanh:
      case Op::kThresholdedRelu: case Op::kWhere: case Op::kXor:
        return elementwise(0, node_.inputs.size());
        // clang-format on
    }
    return refuse("is not known to keep the items of a batch apart");
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
      if (state(i).kind != State::Kind::kSame) return refuse(fmt::format("operand {} depends on the batch", i));
    }
    return {};
  }

  int64_t axis_attribute(int64_t fallback, size_t rank) const {
    const int64_t axis = node_.integer("axis", fallback);
    return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  }

  /// Broadcasting aligns the last axes: where those of the operands that have rows meet, they must agree.
  Outcome elementwise(size_t first, size_t last) const {
    std::optional<State> rows;
    bool sizes = false;
    const auto rank = static_cast<int64_t>(result_dims().size());
    for (size_t i = first; i < last; ++i) {
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
    if (node_.op == Op::kExpand && state(0).is_rows()) return elementwise(0, 1);
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
    const Dim before = product(from, 0, static_cast<size_t>(state(0).axis));
    for (size_t axis = 0; axis < to.size(); ++axis) {
      if (!mentions(to[axis], symbol_)) continue;
      const auto block = block_of(to[axis], symbol_);
      const bool starts_alike = product(to, 0, axis) == before, complete = product(to) == product(from);
      if (block && starts_alike && complete) return State::rows(static_cast<int64_t>(axis), *block);
      break;
    }
    return refuse(fmt::format("reshapes {} to {}, which mixes the batch with other axes", print(from), print(to)));
  }

  Outcome matmul() const {
    const auto rank_a = static_cast<int64_t>(dims(0).size()), rank_b = static_cast<int64_t>(dims(1).size());
    const auto rank = static_cast<int64_t>(result_dims().size());
    if (state(0).is_size() || state(1).is_size()) return refuse("computes with the size of the batch");
    std::optional<State> rows;
    if (state(0).is_rows()) {
      const bool transposed = node_.integer("transA", 0) != 0;
      const int64_t inner = transposed && rank_a > 1 ? rank_a - 2 : rank_a - 1;
      if (state(0).axis == inner) return refuse("sums over the batch axis");
      // Counted from the end, as the leading axes broadcast; the row axis is the last but one of the result, or the last if b is a vector.
      int64_t from_end = rank_a - state(0).axis;
      if (transposed && from_end == 1) from_end = 2;
      rows = State::rows(rank - (rank_b == 1 ? from_end - 1 : from_end), state(0).block);
    }
    if (state(1).is_rows()) {
      if (state(1).axis >= rank_b - 2) return refuse("multiplies by a matrix with the batch in its rows or columns");
      const State there = State::rows(rank - (rank_b - state(1).axis) + (rank_a == 1 ? 1 : 0), state(1).block);
      if (rows && (rows->axis != there.axis || !(rows->block == there.block))) return refuse("brings different axes of the batch together");
      rows = there;
    }
    for (size_t i = 2; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone || state(i).kind == State::Kind::kSame) continue;
      const int64_t axis = state(i).axis + rank - static_cast<int64_t>(dims(i).size());
      if (!state(i).is_rows() || !rows || axis != rows->axis || !(state(i).block == rows->block))
        return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return *rows;
  }

  /// x [n, c, spatial...] with parameters; FusedConv adds a residual of the result's shape.
  Outcome image() const {
    const bool residual = node_.op == Op::kFusedConv && node_.inputs.size() > 3;
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (residual && i == 3) continue;
      if (state(i).kind != State::Kind::kSame) return refuse(fmt::format("operand {} depends on the batch", i));
    }
    if (!state(0).is_rows() || state(0).axis != 0) return refuse("has the batch elsewhere than on its first axis");
    const bool alike = !residual || (state(3).is_rows() && state(3).axis == 0 && state(3).block == state(0).block);
    if (!alike) return refuse("adds a residual with the batch elsewhere");
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
      if (!is_batch && state(i).kind != State::Kind::kSame) return refuse(fmt::format("operand {} depends on the batch", i));
      if (!is_batch) continue;
      const bool fits = state(i).is_rows() && state(i).axis == (i == kLengths ? 0 : axis) && state(i).block == state(kX).block;
      if (!fits) return refuse(fmt::format("operand {} has the batch elsewhere", i));
    }
    return State::rows(batch_first ? 0 : result_ == 0 ? 2 : 1, state(kX).block);
  }

  /// PRelu, QuantizeLinear and its inverse: functions of an element of x and of parameters that do not tell the items apart.
  Outcome elements_with_parameters() const {
    SERIN_CHECK(rest_is_same(1));
    if (!state(0).is_rows()) return refuse("computes with the size of the batch");
    const auto rank = static_cast<int64_t>(dims(0).size());
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] == kNone || product(dims(i)) == Dim(1)) continue;
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
  mutable size_t result_ = 0;
};

class Proof {
 public:
  explicit Proof(Graph graph) : graph_(std::move(graph)) {}

  Result<std::string> run() {
    SERIN_TRY(values_, infer_shapes_and_values(graph_));
    states_.resize(graph_.value_capacity());
    SERIN_CHECK(start());
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const NodeId id : order) SERIN_CHECK(step(id));
    SERIN_CHECK(check_outputs());
    return symbol_;
  }

 private:
  template <class... Args>
  static Error refuse(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...)};
  }

  Status start() {
    if (graph_.inputs().empty()) return refuse("the model has no inputs");
    for (const ValueId id : graph_.inputs()) {
      const Value& input = graph_.value(id);
      const auto symbol = input.type.shape && !input.type.shape->empty() ? input.type.shape->front().symbol_name() : std::nullopt;
      if (!symbol) return refuse("input '{}' has no batch axis: its shape is {}", input.name, print(input.type));
      if (symbol_.empty()) symbol_ = *symbol;
      if (*symbol != symbol_) return refuse("input '{}' has '{}' on its first axis, another input has '{}'", input.name, *symbol, symbol_);
      if (mentions(Dims(input.type.shape->begin() + 1, input.type.shape->end()), symbol_))
        return refuse("input '{}' has '{}' on more than one axis", input.name, symbol_);
      states_[static_cast<size_t>(id)] = State::rows(0, 1);
    }
    return {};
  }

  Status step(NodeId id) {
    const Node& node = graph_.node(id);
    const auto of = [&](ValueId value) { return value == kNone ? State{} : states_[static_cast<size_t>(value)]; };
    const bool all_same = std::ranges::all_of(node.inputs, [&](ValueId value) { return of(value).kind == State::Kind::kSame; });
    if (all_same) return {};
    for (const auto& inputs_and_outputs : {node.inputs, node.outputs}) {
      for (const ValueId value : inputs_and_outputs) {
        if (value != kNone && !graph_.value(value).type.shape)
          return refuse("node '{}' ({}): the shape of '{}' is not known", node.name, op_name(node.op), graph_.value(value).name);
      }
    }
    const Rule rule(graph_, node, states_, values_, symbol_);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      auto state = rule.run(i);
      if (!state) return refuse("node '{}' ({}) {}", node.name, op_name(node.op), state.error().message);
      SERIN_CHECK(settle(node, node.outputs[i], *state));
    }
    return {};
  }

  /// Stores what a rule found, where the shape agrees.
  Status settle(const Node& node, ValueId id, State state) {
    const auto& elements = values_[static_cast<size_t>(id)];
    if (state.is_size() && elements && !mentions(*elements, symbol_))
      state = State{};  // the other sizes of the shape: known, or another symbol
    const Dims& dims = *graph_.value(id).type.shape;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool tracked = state.is_rows() && state.axis == static_cast<int64_t>(axis);
      const bool agrees = tracked ? dims[axis] == Dim::symbol(symbol_) * state.block : !mentions(dims[axis], symbol_);
      if (!agrees)
        return refuse("node '{}' ({}) has shape {}, in which the batch axis is not kept apart", node.name, op_name(node.op), print(dims));
    }
    states_[static_cast<size_t>(id)] = std::move(state);
    return {};
  }

  Status check_outputs() const {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      const State& state = states_[static_cast<size_t>(id)];
      const std::string& name = i < graph_.output_names().size() ? graph_.output_names()[i] : graph_.value(id).name;
      if (!state.is_rows()) return refuse("output '{}' has no batch axis", name);
      if (state.axis != 0 || !(state.block == Dim(1)))
        return refuse("output '{}' has shape {}, the batch is not its first axis", name, print(*graph_.value(id).type.shape));
    }
    return {};
  }

  Graph graph_;
  ShapeValues values_;
  std::vector<State> states_;
  std::string symbol_;
};

}  // namespace

Batchable prove_batchable(const Graph& graph) {
  const auto symbol = Proof(graph).run();
  if (!symbol) return {false, symbol.error().message, ""};
  return {true, "", *symbol};
}

}  // namespace serin::graph
