// flex_attention.cc: FlexAttention of ai.onnx.preview, written out: softmax(mod(q k^T * scale)) v, with graphs of the file in between.
//
//   q [b, hq, l, e], k [b, hkv, s, e], v [b, hkv, s, ev]  ->  y [b, hq, l, ev]
//
// Query heads that share a key head follow each other, so q as [b, hkv, (hq/hkv) l, e] multiplies k as it is, and nothing is repeated. The
// graphs `score_mod` and `prob_mod` see [b, hq, l, s], in the type that the softmax is computed in; their nodes are put in here.

#include <fmt/format.h>

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {
namespace {

using graph::Op;
using graph::ValueId;

class FlexAttention {
 public:
  explicit FlexAttention(NodeImport& node) : node_(node), q_(node.input(0)), k_(node.input(1)), v_(node.input(2)) {}

  void import() {
    const DType declared = node_.graph().value(q_).type.dtype;
    const auto wanted = node_.has("softmax_precision") ? dtype_from(node_.integer("softmax_precision", 1))
                                                       : Result<DType>(declared == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
    if (!wanted) return node_.fail(wanted.error().code, "softmax_precision: " + wanted.error().message);
    const std::string precision(dtype_name(*wanted));
    const auto cast = [&](const char* name, ValueId x) { return step(Op::kCast, name, {x}, {{"to", precision}}); };

    const ValueId q = step(Op::kMul, "scaled", {cast("q", q_), scale(precision)});
    const ValueId grouped =
        step(Op::kReshape, "grouped", {q, list("group_shape", {part(q_, 0, 1), part(k_, 1, 2), number(-1), part(q_, 3, 4)})});
    const ValueId k = step(Op::kTranspose, "k_transposed", {cast("k", k_)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    const ValueId scores = step(Op::kMatMul, "products", {grouped, k});
    const ValueId by_head = step(Op::kReshape, "scores", {scores, list("score_shape", {part(q_, 0, 3), part(k_, 2, 3)})});
    const ValueId probabilities = step(Op::kSoftmax, "probabilities", {modified("score_mod", by_head)}, {{"axis", int64_t{-1}}});
    const ValueId weights = modified("prob_mod", probabilities);

    const ValueId regrouped =
        step(Op::kReshape, "regrouped", {weights, list("weight_shape", {part(k_, 0, 2), number(-1), part(k_, 2, 3)})});
    const ValueId mixed = step(Op::kMatMul, "mixed", {regrouped, cast("v", v_)});
    const ValueId y = step(Op::kReshape, "y", {mixed, list("shape", {part(q_, 0, 3), part(v_, 3, 4)})});
    node_.emit(Op::kCastLike, {y, q_});
  }

 private:
  ValueId step(Op op, std::string_view name, std::vector<ValueId> inputs, graph::Attributes attributes = {}) {
    return node_.step(op, name, std::move(inputs), std::move(attributes));
  }

  ValueId number(int64_t value) { return node_.graph().add_constant("number", graph::make_constant(std::span(&value, 1))); }

  /// Dimensions [begin, end) of x.
  ValueId part(ValueId x, int64_t begin, int64_t end) {
    using Int64s = std::vector<int64_t>;
    const ValueId shape = step(Op::kShape, fmt::format("shape_{}", steps_++), {x});
    return step(Op::kSlice, fmt::format("dims_{}", steps_++), {shape},
                {{"starts", Int64s{begin}}, {"ends", Int64s{end}}, {"axes", Int64s{0}}, {"steps", Int64s{1}}});
  }

  ValueId list(std::string_view name, std::vector<ValueId> parts) {
    return step(Op::kConcat, name, std::move(parts), {{"axis", int64_t{0}}});
  }

  /// The attribute, or 1 / sqrt(e).
  ValueId scale(const std::string& precision) {
    if (node_.has("scale")) {
      const double value = node_.number("scale", 1);
      const ValueId constant = node_.graph().add_constant("scale", graph::make_scalar(DType::kFloat32, value));
      return step(Op::kCast, "scale", {constant}, {{"to", precision}});
    }
    const ValueId size = step(Op::kCast, "head_size", {part(q_, 3, 4)}, {{"to", precision}});
    return step(Op::kReciprocal, "scale", {step(Op::kSqrt, "root", {size})});
  }

  /// x through the graph of that attribute, where there is one.
  ValueId modified(std::string_view key, ValueId x) {
    if (!node_.has(key)) return x;
    const GraphProto* const body = node_.body(key);
    if (!body) return x;
    auto results = node_.scope().inlined(*body, {x}, fmt::format("{}/{}", node_.name(), key));
    if (results && results->size() == 1) return results->front();
    const Error error = results ? Error{Code::kCorrupt, "must return one value"} : results.error();
    node_.fail(error.code, fmt::format("{}: {}", key, error.message));
    return x;
  }

  NodeImport& node_;
  ValueId q_, k_, v_;
  int steps_ = 0;
};

constexpr OperatorRow kPreviewOperators[] = {
    {"FlexAttention", 1, 3, 3, 1, [](NodeImport& node, Op) { FlexAttention(node).import(); }},
};

}  // namespace

OperatorFamily preview_operators() { return {"ai.onnx.preview", kPreviewOperators}; }

}  // namespace serin::formats::onnx
