// infer_shapes: one walk in topological order; each node's rule (table.cc) sets the types of its results, and small integers are computed
// along the way, because exporters compute shapes with the same operators as data: Shape -> Gather -> Concat -> Reshape.

#include "runtime/graph/ops/infer.h"

#include <algorithm>

namespace serin::graph {
namespace {

constexpr bool is_integer(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool; }

std::optional<Dims> elements_of(const Constant& constant) {
  if (!is_integer(constant.dtype) || constant.elements() > static_cast<int64_t>(kMaxShapeValues)) return std::nullopt;
  const auto integers = integers_of(constant);
  return integers ? std::optional(Dims(integers->begin(), integers->end())) : std::nullopt;
}

}  // namespace

const Dims* Context::dims(size_t operand) const {
  if (!has(operand)) return nullptr;
  const auto& shape = graph_.value(node().inputs[operand]).type.shape;
  return shape ? &*shape : nullptr;
}

const Dims* Context::elements(size_t operand) const {
  if (!has(operand)) return nullptr;
  auto& known = values_[static_cast<size_t>(node().inputs[operand])];
  if (!known && source_) {
    if (const ConstantPtr contents = source_->contents(node().inputs[operand])) known = elements_of(*contents);
  }
  return known ? &*known : nullptr;
}

ConstantPtr Context::constant(size_t operand) const {
  if (!has(operand)) return nullptr;
  const ConstantPtr known = graph_.constant(node().inputs[operand]);
  return known || !source_ ? known : source_->contents(node().inputs[operand]);
}

std::optional<Dims> Context::list(std::string_view attribute, size_t operand) const {
  if (node().attributes.contains(attribute)) {
    const auto integers = node().integers(attribute);
    return Dims(integers.begin(), integers.end());
  }
  const Dims* known = elements(operand);
  return known ? std::optional(*known) : std::nullopt;
}

std::optional<std::vector<int64_t>> Context::known_list(std::string_view attribute, size_t operand) const {
  const auto dims = list(attribute, operand);
  if (!dims) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& dim : *dims) {
    const auto number = dim.value();
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Result<int64_t> Context::axis(int64_t axis, size_t rank) const {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) return fail("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + limit : axis;
}

Result<std::vector<int64_t>> Context::axes(std::vector<int64_t> axes, size_t rank) const {
  for (int64_t& each : axes) {
    SERIN_TRY(each, axis(each, rank));
  }
  std::ranges::sort(axes);
  if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end()) return fail("axis {} is given twice", *twice);
  return axes;
}

Status Context::same_dtype(size_t a, size_t b) const {
  const DType x = dtype(a), y = dtype(b);
  if (x == y || x == DType::kUndefined || y == DType::kUndefined) return {};
  return fail("operand {} is {}, operand {} is {}; they must have one type", a, dtype_name(x), b, dtype_name(y));
}

Status Context::index_dtype(size_t operand) const {
  const DType x = dtype(operand);
  if (x == DType::kInt64 || x == DType::kInt32 || x == DType::kUndefined) return {};
  return fail("operand {} is {}, it must be i32 or i64", operand, dtype_name(x));
}

Result<DType> Context::dtype_attribute(std::string_view key, std::optional<DType> fallback) const {
  const std::string name = node().text(key, "");
  if (name.empty() && fallback) return *fallback;
  const auto dtype = find_dtype(name);
  if (!dtype) return fail("attribute '{}' is '{}', it must name a dtype such as f32", key, name);
  return *dtype;
}

Status Context::set(size_t result, DType dtype, std::optional<Dims> dims) {
  return set(result, Type{ValueKind::kTensor, dtype, std::move(dims)});
}

Status Context::set(size_t result, Type type) {
  if (const auto& dims = type.shape) {
    if (!Shape::fits(dims->size())) return fail("a result has rank {}; at most {} is supported", dims->size(), Shape::kMaxRank);
    for (const Dim& dim : *dims) {
      if (dim.known() && *dim.value() < 0) return fail("the result would have shape {}, a dimension is negative", print(*dims));
    }
    if (const auto shape = known_shape(*dims)) {
      const auto elements = shape->checked_elements();
      if (!elements || *elements > kMaxElements)
        return fail("the result would have shape {}, more than the limit of {} elements", print(*dims), kMaxElements);
    }
  }
  const ValueId id = node().outputs[result];
  if (id != kNone) graph_.value(id).type = std::move(type);
  return {};
}

void Context::set_elements(size_t result, Dims elements) {
  const ValueId id = node().outputs[result];
  if (id != kNone && elements.size() <= kMaxShapeValues) values_[static_cast<size_t>(id)] = std::move(elements);
}

Dim Context::unknown_dim(const std::optional<Dim>& bound) {
  std::string name = "?" + node().name;
  for (int i = 1; !unknown_names_.insert(name).second; ++i) name = fmt::format("?{}.{}", node().name, i);
  if (bound) graph_.data_dims[name] = *bound;
  return Dim::symbol(name);
}

Dims Context::unknown_dims(size_t rank) {
  Dims dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(unknown_dim());
  return dims;
}

Inference::Inference(Graph& graph) : graph_(graph) {
  graph.data_dims.clear();
  learn_new_values();
}

void Inference::learn_new_values() {
  for (size_t id = values_.size(); id < graph_.value_capacity(); ++id) {
    const auto& constant = graph_.value(static_cast<ValueId>(id)).constant;
    values_.push_back(constant ? elements_of(*constant) : std::nullopt);
  }
}

const Dims* Inference::elements(ValueId id) {
  learn_new_values();
  const auto& known = values_[static_cast<size_t>(id)];
  return known ? &*known : nullptr;
}

Status Inference::infer(NodeId id) {
  learn_new_values();
  const OpRules& rule = rules(graph_.node(id).op);
  for (const ValueId result : graph_.node(id).outputs) {
    if (result != kNone) forget(result);
  }
  Context context(graph_, id, values_, unknown_names_, source_);
  SERIN_CHECK(rule.infer(context));
  if (rule.values == no_values || graph_.output(id) == kNone) return {};
  const Type& type = graph_.value(graph_.output(id)).type;
  if (!is_integer(type.dtype) || !type.shape || type.kind != ValueKind::kTensor) return {};
  const auto shape = known_shape(*type.shape);
  if (!shape || shape->elements() > static_cast<int64_t>(kMaxShapeValues)) return {};
  Context without_source(graph_, id, values_, unknown_names_, nullptr);  // what may be known is, what is not need not be
  rule.values(without_source);
  return {};
}

ConstantPtr constant_of(const Type& type, const Dims& elements) {
  const auto shape = type.shape ? known_shape(*type.shape) : std::nullopt;
  if (!shape || shape->elements() != static_cast<int64_t>(elements.size())) return nullptr;
  std::vector<int64_t> numbers;
  for (const Dim& element : elements) {
    if (!element.known()) return nullptr;
    numbers.push_back(*element.value());
  }
  if (type.dtype == DType::kInt64) return make_constant(DType::kInt64, *shape, numbers.data());
  if (type.dtype == DType::kInt32) {
    const std::vector<int32_t> narrow(numbers.begin(), numbers.end());
    return make_constant(DType::kInt32, *shape, narrow.data());
  }
  if (type.dtype != DType::kBool) return nullptr;
  const std::vector<uint8_t> flags(numbers.begin(), numbers.end());
  return make_constant(DType::kBool, *shape, flags.data());
}

void Inference::forget_unknown() {
  unknown_names_.clear();
  graph_.data_dims.clear();
}

Result<ShapeValues> infer_shapes_and_values(Graph& graph) {
  Inference inference(graph);
  SERIN_TRY(const auto order, graph.topological_order());
  for (const NodeId id : order) SERIN_CHECK(inference.infer(id));
  return inference.take_values();
}

Status infer_shapes(Graph& graph) {
  auto values = infer_shapes_and_values(graph);
  if (!values) return values.error();
  return {};
}

Dim product(const Dims& dims, size_t begin, size_t end) {
  Dim result = 1;
  for (size_t axis = begin; axis < end; ++axis) result = result * dims[axis];
  return result;
}

Dim min(const Dim& a, const Dim& b) {
  constexpr int64_t kBeyond = int64_t{1} << 62;  // "all of them": no size, and the sum below would saturate
  if (b.value().value_or(0) >= kBeyond) return a;
  if (a.value().value_or(0) >= kBeyond) return b;
  return a + b - max(a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) { return floor_div(a + b - Dim(1), b); }

std::optional<Dim> unify(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.known() && b.known()) return std::nullopt;
  return a.known() ? a : b.known() ? b : a;
}

bool agree(const Dims& a, const Dims& b) {
  return std::ranges::equal(a, b, [](const Dim& x, const Dim& y) { return unify(x, y).has_value(); });
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& x = result[offset + i];
    const Dim& y = shorter[i];
    if (x == y || y == Dim(1)) continue;
    if (x == Dim(1))
      x = y;
    else if (x.known() && y.known())
      return std::nullopt;
    else if (!x.known() && !y.known())
      x = max(x, y);  // one of them is 1, or they are equal
    else
      x = x.known() ? x : y;  // the unknown one is 1, or the number
  }
  return result;
}

}  // namespace serin::graph
