// builder.cc: adds a node, gives it a name that no other node has, and infers its types.

#include "runtime/graph/builder.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/float16.h"
#include "runtime/graph/ops/infer.h"

namespace serin::graph {

Builder::Builder(Graph& graph) : graph_(graph), inference_(std::make_unique<Inference>(graph)) {}
Builder::~Builder() = default;

void Builder::start(std::string_view name) { node_ = name; }

std::string Builder::next_name(std::string_view step) {
  if (names_.insert(node_).second) return node_;
  std::string name = fmt::format("{}/{}", node_, step);
  for (int number = 2; !names_.insert(name).second; ++number) name = fmt::format("{}/{}_{}", node_, step, number);
  return name;
}

ValueId Builder::add(Op op, std::vector<ValueId> inputs, Attributes attributes) {
  return add_with_results(op, 1, std::move(inputs), std::move(attributes)).front();
}

std::vector<ValueId> Builder::add_with_results(Op op, size_t results, std::vector<ValueId> inputs, Attributes attributes) {
  return add_with_bodies(op, results, std::move(inputs), std::move(attributes), {});
}

std::vector<ValueId> Builder::add_with_bodies(Op op, size_t results, std::vector<ValueId> inputs, Attributes attributes,
                                              std::vector<std::shared_ptr<const Graph>> bodies) {
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  const NodeId id = graph_.add_node(op, next_name(op_name(op)), std::move(inputs), std::move(attributes), results);
  graph_.node(id).bodies = std::move(bodies);
  if (!error_) {
    Status inferred = verify_node(graph_, id);
    if (inferred) inferred = inference_->infer(id);
    if (!inferred) error_ = inferred.error();
  }
  return graph_.node(id).outputs;
}

ValueId Builder::constant(ConstantPtr constant) { return this->constant(node_ + "/constant", std::move(constant)); }

ValueId Builder::constant(std::string name, ConstantPtr constant) {
  std::string unique = name;
  for (int number = 2; !names_.insert(unique).second; ++number) unique = fmt::format("{}_{}", name, number);
  return graph_.add_constant(std::move(unique), std::move(constant));
}

ValueId Builder::integers(const std::vector<int64_t>& values) { return constant(make_constant(values)); }

ValueId Builder::number(DType dtype, double value) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return cast(number(DType::kFloat32, value), dtype);
  const ConstantPtr made = make_scalar(dtype, value);
  if (made) return constant(made);
  fail(Code::kUnsupported, fmt::format("a number of type {}", dtype_name(dtype)));
  return constant(make_scalar(DType::kFloat32, value));
}

ValueId Builder::cast(ValueId x, DType to) { return dtype(x) == to ? x : add(Op::kCast, {x}, {{"to", std::string(dtype_name(to))}}); }

ValueId Builder::reshape(ValueId x, const std::vector<int64_t>& shape) { return add(Op::kReshape, {x, integers(shape)}); }

ValueId Builder::transpose(ValueId x, const std::vector<int64_t>& order) { return add(Op::kTranspose, {x}, {{"perm", order}}); }

ValueId Builder::squeeze(ValueId x, const std::vector<int64_t>& axes) { return add(Op::kSqueeze, {x}, {{"axes", axes}}); }

ValueId Builder::unsqueeze(ValueId x, const std::vector<int64_t>& axes) { return add(Op::kUnsqueeze, {x}, {{"axes", axes}}); }

ValueId Builder::slice(ValueId x, int64_t axis, int64_t begin, int64_t end) {
  using List = std::vector<int64_t>;
  return add(Op::kSlice, {x}, {{"starts", List{begin}}, {"ends", List{end}}, {"axes", List{axis}}});
}

std::optional<size_t> Builder::rank(ValueId id) const {
  return id != kNone && dims(id) ? std::optional<size_t>(dims(id)->size()) : std::nullopt;
}

std::optional<int64_t> Builder::size(ValueId id, size_t axis) const {
  return id != kNone && dims(id) && axis < dims(id)->size() ? (*dims(id))[axis].value() : std::nullopt;
}

const Dims* Builder::elements(ValueId id) const { return id == kNone ? nullptr : inference_->elements(id); }

std::optional<std::vector<int64_t>> Builder::known_integers(ValueId id) const {
  const Dims* const known = elements(id);
  if (!known) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& each : *known) {
    if (!each.known()) return std::nullopt;
    numbers.push_back(*each.value());
  }
  return numbers;
}

void Builder::fail(Code code, std::string_view problem) {
  if (!error_) error_ = Error{code, fmt::format("node '{}': {}", node_, problem)};
}

}  // namespace serin::graph
