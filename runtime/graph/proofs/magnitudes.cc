// magnitudes.cc
//
// Bounds come from where they are asked for, backwards, and end at what is bounded whatever goes in: a normalisation, a constant, a function like Softmax.
//
//   LayerNormalization   (x - mean) / sqrt(var + eps) has a 2-norm of at most sqrt(n): the sum of its squares is n var / (var + eps). Kernels take var as the mean of
//                        (x - mean)^2 with the mean that they found, so that no cancellation in the mean undoes this
//   products             |a b| <= |a| |b| (Cauchy and Schwarz); where b is known, each piece of the columns stretches a by no more than its largest singular value,
//                        and the scale of a normalisation before it is part of b, its shift a constant (magnitudes_product.h)
//   sums, movement, functions of one element   as one would think; weighted means (Attention) keep the norm of the values
//
// It is what is computed that is bounded. A step may round its operands and its result to 16 bits (kRounded), adds up as many as kMostTerms in f32, and what
// underflows in an f16 is off by kTiny: `computed` allows for all of it. What saturates is only smaller. Inputs, weights that are no finite numbers and operators
// that are not here are kUnknown.

#include "runtime/graph/proofs/magnitudes.h"

#include <algorithm>
#include <cmath>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/proofs/magnitudes_movement.h"
#include "runtime/graph/proofs/magnitudes_product.h"

namespace serin::graph {
namespace {

constexpr double kUnknown = Magnitudes::kUnknown;
constexpr int64_t kMostTerms = int64_t{1} << 14;  // x 2^-24 each is 2^-10
constexpr double kMean = 4;                       // weights of 2^23 keys that are rounded up to kTiny, added up in f32: 2.1 instead of 1
constexpr double kLeastEpsilon = 1e-30;           // below, the squares of a row may underflow and the row itself not
constexpr double kLeastDivisor = 0x1p-14, kMostDivisor = 65504;  // as they are in an f16
constexpr int kMostDepth = 200;

class MagnitudeRule {
 public:
  MagnitudeRule(Magnitudes& all, const Graph& graph, ValueId id, Piece piece)
      : all_(all), graph_(graph), id_(id), dims_(*graph.value(id).type.shape), piece_(piece) {}

  double bound() const {
    if (const ConstantPtr constant = graph_.constant(id_)) return of_constant(*constant);
    const NodeId producer = graph_.producer(id_);
    if (producer == kNone) return kUnknown;
    const Node& node = graph_.node(producer);
    for (const auto& list : {node.inputs, node.outputs})
      for (const ValueId id : list)
        if (id != kNone && !graph_.value(id).type.shape) return kUnknown;
    return (this->*range_of(node.op))(node);
  }

 private:
  using Range = double (MagnitudeRule::*)(const Node&) const;
  static Range range_of(Op op) {
    static constexpr Range kRanges[] = {
#define SERIN_OP(name, least, most, results, infer, values, batch, padding, range, ...) &MagnitudeRule::range,
#include "runtime/graph/ops/all.def"
    };
    return kRanges[static_cast<size_t>(op)];
  }

  // The ranges that ops/*.def name: |f(x)| <= |x|, |f(x)| <= 1, both, and those of single operators.

  double unknown(const Node& /*node*/) const { return kUnknown; }
  double shrinks(const Node& node) const { return computed(operand(node, 0)); }
  double at_most_one(const Node& /*node*/) const { return computed(spread(1)); }
  double shrinks_to_one(const Node& node) const { return std::min(at_most_one(node), shrinks(node)); }
  double leaky(const Node& node) const { return shrinks(node) * std::max(1.0, std::abs(node.number("alpha", 0.01))); }
  double sum(const Node& node) const { return computed(operand(node, 0) + operand(node, 1)); }
  double product(const Node& node) const {
    return computed(std::min(all_.of(node.inputs[0]) * operand(node, 1), operand(node, 0) * all_.of(node.inputs[1])));
  }
  double quotient(const Node& node) const {
    const auto divisor = known_number(graph_, node.inputs[1]);
    const double size = std::abs(divisor.value_or(0));
    return size >= kLeastDivisor && size <= kMostDivisor ? computed(operand(node, 0) / size) : kUnknown;
  }
  double choice(const Node& node) const {
    return piece_.length == 1 ? std::max(operand(node, 1), operand(node, 2)) : std::hypot(operand(node, 1), operand(node, 2));
  }
  double same(const Node& node) const { return operand(node, 0); }
  double reshape(const Node& node) const { return moved(sources_of_reshape(graph_, node, dims_, piece_)); }
  double transpose(const Node& node) const { return moved(sources_of_transpose(graph_, node, dims_, piece_)); }
  double split(const Node& node) const { return moved(sources_of_split(graph_, node, dims_, piece_)); }
  double slice(const Node& node) const { return moved(sources_of_slice(graph_, node, dims_, piece_)); }
  double concat(const Node& node) const { return moved(sources_of_concat(graph_, node, dims_, piece_)); }
  double gather(const Node& node) const { return moved(sources_of_gather(graph_, node, dims_, piece_)); }

  const Dims& dims(const Node& node, size_t operand) const { return *graph_.value(node.inputs[operand]).type.shape; }
  bool is_last() const { return piece_.length == 1 || piece_.axis + 1 == dims_.size(); }
  double length() const { return static_cast<double>(piece_.length); }
  /// Of a piece whose elements are no larger than that.
  double spread(double element) const { return std::sqrt(length()) * element; }
  /// With what the step that computes it rounds: both operands and the result.
  double computed(double exact) const { return exact * (1 + 4 * kRounded) + spread(kTiny); }

  /// The same piece of an operand that is broadcast to the result.
  double operand(const Node& node, size_t i) const {
    const Dims& own = dims(node, i);
    const size_t behind = dims_.size() - std::min(dims_.size(), own.size());
    const bool has = piece_.length > 1 && piece_.axis >= behind && own[piece_.axis - behind] == dims_[piece_.axis];
    return has ? all_.of(node.inputs[i], {piece_.axis - behind, piece_.length}) : spread(all_.of(node.inputs[i]));
  }

  double of_constant(const Constant& constant) const {
    if (constant.dtype != DType::kFloat32) {
      const auto number = number_of(constant);
      return number ? computed(spread(std::abs(*number))) : kUnknown;
    }
    const Elements<float> elements = constant.span<float>();
    if (!elements.data() || elements.empty()) return kUnknown;
    const size_t count = elements.size(), length = static_cast<size_t>(piece_.length);
    size_t stride = 1;
    for (size_t axis = piece_.axis + 1; axis < constant.shape.rank(); ++axis) stride *= static_cast<size_t>(constant.shape[axis]);
    double most = 0;
    for (size_t first = 0; first < count; first += stride * length) {
      for (size_t i = first; i < first + stride; ++i) {
        double sum = 0;
        for (size_t k = 0; k < length; ++k)
          sum += static_cast<double>(elements[i + k * stride]) * static_cast<double>(elements[i + k * stride]);
        if (!std::isfinite(sum)) return kUnknown;
        most = std::max(most, sum);
      }
    }
    return computed(std::sqrt(most));
  }

  /// From floats to floats; bools are 0 or 1. Integers wrap.
  double cast(const Node& node) const {
    const DType from = graph_.value(node.inputs[0]).type.dtype;
    if (from == DType::kBool) return computed(spread(1));
    return is_float(from) && is_float(graph_.value(id_).type.dtype) ? computed(operand(node, 0)) : kUnknown;
  }

  double moved(const Sources& sources) const {
    double most = sources.empty() ? kUnknown : 0;
    for (const auto& [id, piece] : sources) most = std::max(most, all_.of(id, piece));
    return most;
  }

  double normalise(const Node& node) const {
    if (!is_last() || !is_normalised(node)) return kUnknown;
    const Dims& x = dims(node, 0);
    const double size = static_cast<double>(*x.back().value());
    const double shift = node.inputs.size() > 2 && node.inputs[2] != kNone ? operand(node, 2) : 0;
    return computed(std::sqrt(size) * all_.of(node.inputs[1]) + shift);
  }
  /// Each row alone, of few enough elements.
  bool is_normalised(const Node& node) const {
    const Dims& x = dims(node, 0);
    const int64_t axis = node.integer("axis", -1);
    const auto size = x.empty() ? std::nullopt : x.back().value();
    return size && *size > 0 && *size <= kMostTerms && (axis == -1 || axis == static_cast<int64_t>(x.size()) - 1) &&
           node.number("epsilon", 1e-5) >= kLeastEpsilon;
  }

  double matmul(const Node& node) const {
    const Dims &a = dims(node, 0), &b = dims(node, 1);
    if (!is_last() || a.size() < 2 || b.size() < 2) return kUnknown;
    const bool turn_a = node.integer("transA", 0) != 0, turn_b = node.integer("transB", 0) != 0;
    const size_t a_inner = a.size() - (turn_a ? 2 : 1), b_inner = b.size() - (turn_b ? 1 : 2);
    double added = 0;
    for (const size_t i : {2, 3})
      if (i < node.inputs.size() && node.inputs[i] != kNone) added += operand(node, i);
    const std::string activation = node.text("activation", "");
    const auto function = activation == "GeluTanh" ? Op::kGelu : find_op(activation).value_or(Op::kIdentity);
    const Range range = range_of(function);
    if (range == &MagnitudeRule::at_most_one) return computed(spread(1));
    if (range != &MagnitudeRule::shrinks && range != &MagnitudeRule::shrinks_to_one) return kUnknown;
    if (graph_.is(graph_.producer(node.inputs[0]), Op::kSoftmax) && !turn_a && !turn_b && weighs_rows(node))  // means of rows of b
      return computed(kMean * all_.of(node.inputs[1], {b.size() - 1, piece_.length}) + added);
    const auto terms = a[a_inner].value();
    if (!terms || *terms < 1 || *terms > kMostTerms) return kUnknown;
    const double row = all_.of(node.inputs[0], {a_inner, *terms});
    if (!turn_a && b.size() == 2 && graph_.constant(node.inputs[1])) return known_product(node, row);
    return computed(spread(row * all_.of(node.inputs[1], {b_inner, *terms})) + added);
  }
  bool weighs_rows(const Node& node) const {
    const Node& softmax = graph_.node(graph_.producer(node.inputs[0]));
    const int64_t axis = softmax.integer("axis", -1);
    return axis == -1 || axis == static_cast<int64_t>(dims(node, 0).size()) - 1;
  }

  /// f32 numbers, one for each element of the last axis; nothing where an operand is something else.
  std::optional<std::vector<double>> row_of(ValueId id, int64_t size) const {
    const ConstantPtr constant = graph_.constant(id);
    if (!constant || constant->dtype != DType::kFloat32 || constant->elements() != size || constant->shape.rank() == 0 ||
        constant->shape.back() != size)
      return std::nullopt;
    const Elements<float> elements = constant->span<float>();
    if (!elements.data()) return std::nullopt;
    return std::vector<double>(elements.begin(), elements.end());
  }

  /// The rows of an operand: those of a normalisation are a row of a known length that is scaled and shifted.
  BoundedRows rows_of(ValueId id, int64_t size, double norm) const {
    BoundedRows plain{norm, norm, {}, {}};
    const NodeId maker = graph_.producer(id);
    if (!graph_.is(maker, Op::kLayerNormalization) && !graph_.is(maker, Op::kRMSNormalization)) return plain;
    const Node& node = graph_.node(maker);
    auto scale = row_of(node.inputs[1], size);
    auto shift = std::optional(std::vector<double>());
    if (node.inputs.size() > 2 && node.inputs[2] != kNone) shift = row_of(node.inputs[2], size);
    if (!scale || !shift || !is_normalised(node)) return plain;
    return {norm, std::sqrt(static_cast<double>(size)) * (1 + 4 * kRounded), std::move(*scale), std::move(*shift)};
  }

  /// With weights that are known. `norm` is that of the other operand's rows.
  double known_product(const Node& node, double norm) const {
    const auto width = dims_.back().value();
    if (!width || !std::isfinite(norm)) return kUnknown;
    double added = 0;
    std::vector<double> bias(static_cast<size_t>(*width), 0.0);
    for (const size_t i : {2, 3}) {
      if (i >= node.inputs.size() || node.inputs[i] == kNone) continue;
      if (const auto row = row_of(node.inputs[i], *width))
        std::ranges::transform(*row, bias, bias.begin(), std::plus<>());
      else
        added += operand(node, i);
    }
    const Constant& weights = *graph_.constant(node.inputs[1]);
    const bool turned = node.integer("transB", 0) != 0;
    const BoundedRows rows = rows_of(node.inputs[0], weights.shape[turned ? 1 : 0], norm);
    return computed(norm_of_product(rows, weights, turned, bias, piece_.length) + added);
  }

  /// Means of the rows of values.
  double attention(const Node& node) const {
    for (size_t i = 4; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNone) return kUnknown;  // a past
    const Dims& values = dims(node, 2);
    if (!is_last() || node.outputs[0] != id_ || values.size() != 4 || dims_.size() != 4) return kUnknown;
    return computed(kMean * all_.of(node.inputs[2], {3, piece_.length}));
  }

  Magnitudes& all_;
  const Graph& graph_;
  const ValueId id_;
  const Dims& dims_;
  const Piece piece_;
};

}  // namespace

double Magnitudes::of(ValueId id, Piece piece) {
  const auto& shape = graph_.value(id).type.shape;
  if (!shape || piece.length < 1) return kUnknown;
  if (piece.length == 1) piece.axis = 0;
  if (piece.length > 1) {
    const auto size = piece.axis < shape->size() ? (*shape)[piece.axis].value() : std::nullopt;
    if (!size || *size % piece.length != 0) return kUnknown;
  }
  const auto key = std::tuple(id, piece.axis, piece.length);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (depth_ >= kMostDepth) return kUnknown;
  ++depth_;
  double bound = MagnitudeRule(*this, graph_, id, piece).bound();
  if (!std::isfinite(bound)) bound = piece.length > 1 ? std::sqrt(static_cast<double>(piece.length)) * of(id) : kUnknown;
  --depth_;
  if (!std::isfinite(bound)) bound = kUnknown;
  return known_[key] = bound;
}

}  // namespace serin::graph
