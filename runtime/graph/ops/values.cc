// Small integers computed during shape inference, element by element on Dims. A rule that cannot tell says nothing: the value stays unknown.
// Types are inferred already, so that shapes are consistent here; what an attribute may still get wrong is checked again.

#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

using Binary = std::optional<Dim> (*)(const Dim&, const Dim&);

/// ONNX divides integers toward zero; the floor is the same where neither is negative.
std::optional<Dim> divide(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    if (b == Dim(0)) return std::nullopt;
    if (b == Dim(-1)) return Dim(0) - a;
    return Dim(*a.value() / *b.value());
  }
  if (!a.nonnegative() || !b.nonnegative() || b == Dim(0)) return std::nullopt;
  return floor_div(a, b);
}

std::optional<Dim> modulo(const Dim& a, const Dim& b) {
  if (!a.nonnegative() || !b.nonnegative() || b == Dim(0)) return std::nullopt;
  return a - b * floor_div(a, b);
}

/// 1 or 0 where the order of a and b can be told.
std::optional<Dim> equal(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if ((a - b).known() || (a - b).positive() || (b - a).positive()) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> less(const Dim& a, const Dim& b) {
  if ((b - a).positive()) return Dim(1);
  if ((a - b).nonnegative()) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> less_or_equal(const Dim& a, const Dim& b) {
  if ((b - a).nonnegative()) return Dim(1);
  if ((a - b).positive()) return Dim(0);
  return std::nullopt;
}

Binary binary_of(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSum: return [](const Dim& a, const Dim& b) { return std::optional(a + b); };
    case Op::kSub: return [](const Dim& a, const Dim& b) { return std::optional(a - b); };
    case Op::kMul: return [](const Dim& a, const Dim& b) { return std::optional(a * b); };
    case Op::kMax: return [](const Dim& a, const Dim& b) { return std::optional(max(a, b)); };
    case Op::kMin: return [](const Dim& a, const Dim& b) { return std::optional(min(a, b)); };
    case Op::kAnd: return [](const Dim& a, const Dim& b) { return std::optional(min(a, b)); };
    case Op::kOr: return [](const Dim& a, const Dim& b) { return std::optional(max(a, b)); };
    case Op::kDiv: return divide;
    case Op::kMod: return modulo;
    case Op::kEqual: return equal;
    case Op::kLess: return less;
    case Op::kLessOrEqual: return less_or_equal;
    case Op::kGreater: return [](const Dim& a, const Dim& b) { return less(b, a); };
    case Op::kGreaterOrEqual: return [](const Dim& a, const Dim& b) { return less_or_equal(b, a); };
    default: return nullptr;
  }
}

std::optional<Shape> operand_shape(const Context& c, size_t i) { return c.dims(i) ? known_shape(*c.dims(i)) : std::nullopt; }

Shape result_shape(Context& c) { return *known_shape(*c.graph().value(c.node().outputs[0]).type.shape); }

/// Position in an operand of `from` that broadcasts to the element at `position` of `to`.
size_t broadcast_position(const Shape& to, const Shape& from, int64_t position) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < to.rank(); ++i) {
    const int64_t size = to[to.rank() - 1 - i];
    if (i < from.rank()) {
      const int64_t own = from[from.rank() - 1 - i];
      if (own != 1) index += position % size * stride;
      stride *= own;
    }
    position /= size;
  }
  return static_cast<size_t>(index);
}

/// The operand's elements at the result's size; nothing where they are not known.
std::optional<Dims> broadcast_elements(Context& c, size_t operand, const Shape& to) {
  const Dims* known = c.elements(operand);
  const auto shape = operand_shape(c, operand);
  if (!known || !shape) return std::nullopt;
  Dims wide;
  for (int64_t i = 0; i < to.elements(); ++i) wide.push_back((*known)[broadcast_position(to, *shape, i)]);
  return wide;
}

/// Sets each element of the result to the operand's element at source(its index); nothing where that lies outside.
template <class Source>
void set_rearranged(Context& c, const Dims& data, const Shape& shape, Source source) {
  const Shape to = result_shape(c);
  if (to.rank() != shape.rank()) return;
  Dims result;
  std::vector<int64_t> index(to.rank());
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t rest = i, position = 0;
    for (size_t axis = to.rank(); axis-- > 0; rest /= to[axis]) index[axis] = rest % to[axis];
    const std::vector<int64_t> from = source(index);
    for (size_t axis = 0; axis < from.size(); ++axis) {
      if (from[axis] < 0 || from[axis] >= shape[axis]) return;
      position = position * shape[axis] + from[axis];
    }
    result.push_back(data[static_cast<size_t>(position)]);
  }
  c.set_elements(0, std::move(result));
}

}  // namespace

void no_values(Context& /*c*/) {}

void values_copy(Context& c) {
  const DType from = c.dtype(0), to = c.graph().value(c.node().outputs[0]).type.dtype;
  const Dims* known = c.elements(0);
  if (!known) return;
  if (to == DType::kBool && from != DType::kBool) return;
  const auto fits = [](const Dim& dim) { return !dim.known() || (*dim.value() >= INT32_MIN && *dim.value() <= INT32_MAX); };
  if (to == DType::kInt32 && !std::ranges::all_of(*known, fits)) return;
  c.set_elements(0, *known);
}

void values_arithmetic(Context& c) {
  const Binary apply = binary_of(c.node().op);
  const Shape shape = result_shape(c);
  if (c.node().op == Op::kMod && c.node().integer("fmod", 0) != 0) return;
  auto result = broadcast_elements(c, 0, shape);
  for (size_t operand = 1; result && operand < c.operands(); ++operand) {
    const auto next = broadcast_elements(c, operand, shape);
    if (!next) return;
    for (size_t i = 0; i < result->size(); ++i) {
      const auto element = apply((*result)[i], (*next)[i]);
      if (!element) return;
      (*result)[i] = *element;
    }
  }
  if (result) c.set_elements(0, std::move(*result));
}

void values_neg(Context& c) {
  if (!c.elements(0)) return;
  Dims result;
  for (const Dim& dim : *c.elements(0)) result.push_back(c.node().op == Op::kNot ? Dim(1) - dim : Dim(0) - dim);
  c.set_elements(0, std::move(result));
}

void values_where(Context& c) {
  const Shape shape = result_shape(c);
  const auto condition = broadcast_elements(c, 0, shape), a = broadcast_elements(c, 1, shape), b = broadcast_elements(c, 2, shape);
  if (!condition || !a || !b) return;
  Dims result;
  for (size_t i = 0; i < condition->size(); ++i) {
    if (!(*condition)[i].known()) return;
    result.push_back((*condition)[i] == Dim(0) ? (*b)[i] : (*a)[i]);
  }
  c.set_elements(0, std::move(result));
}

void values_shape(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return;
  const auto rank = static_cast<int64_t>(x->size());
  const int64_t given = c.node().integer("start", 0);
  const int64_t start = std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  c.set_elements(0, Dims(x->begin() + start, x->begin() + start + result_shape(c)[0]));
}

void values_size(Context& c) {
  if (c.dims(0)) c.set_elements(0, {product(*c.dims(0))});
}

void values_gather(Context& c) {
  const Dims* data = c.elements(0);
  const Dims* indices = c.elements(1);
  if (!data || !indices || !c.dims(0) || c.dims(0)->size() != 1) return;  // only vectors hold shapes
  Dims result;
  for (const Dim& index : *indices) {
    const auto number = index.value();
    const auto size = static_cast<int64_t>(data->size());
    if (!number || *number < -size || *number >= size) return;
    result.push_back((*data)[static_cast<size_t>(*number < 0 ? *number + size : *number)]);
  }
  c.set_elements(0, std::move(result));
}

/// Exporters turn pads around as a matrix (Reshape, Slice with step -1, Transpose, Reshape), so that more than vectors hold shapes.
void values_slice(Context& c) {
  const Dims* data = c.elements(0);
  const auto shape = operand_shape(c, 0);
  const auto starts = c.known_list("starts", 1), steps = c.known_list("steps", 4);
  auto axes = c.known_list("axes", 3);
  if (!data || !shape || !starts || (!steps && !c.absent("steps", 4)) || (!axes && !c.absent("axes", 3))) return;
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (axes->size() != starts->size() || (steps && steps->size() != starts->size())) return;
  const auto rank = static_cast<int64_t>(shape->rank());
  std::vector<int64_t> first(shape->rank(), 0), step(shape->rank(), 1);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t given = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    if (given < 0 || given >= rank) return;
    const auto axis = static_cast<size_t>(given);
    const int64_t size = (*shape)[axis], start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
    if (size == 0) return;
    step[axis] = steps ? (*steps)[i] : 1;
    first[axis] = std::clamp(start, int64_t{0}, step[axis] > 0 ? size : size - 1);
  }
  set_rearranged(c, *data, *shape, [&](const std::vector<int64_t>& to) {
    std::vector<int64_t> from(to.size());
    for (size_t axis = 0; axis < to.size(); ++axis) from[axis] = first[axis] + to[axis] * step[axis];
    return from;
  });
}

void values_transpose(Context& c) {
  const Dims* data = c.elements(0);
  const auto shape = operand_shape(c, 0);
  if (!data || !shape) return;
  const std::vector<int64_t> perm = c.node().integers("perm");
  set_rearranged(c, *data, *shape, [&](const std::vector<int64_t>& to) {
    std::vector<int64_t> from(to.rbegin(), to.rend());
    for (size_t axis = 0; axis < perm.size(); ++axis) from[static_cast<size_t>(perm[axis])] = to[axis];
    return from;
  });
}

void values_concat(Context& c) {
  if (!c.dims(0) || c.dims(0)->size() != 1) return;
  Dims result;
  for (size_t i = 0; i < c.operands(); ++i) {
    const Dims* part = c.elements(i);
    if (!part) return;
    result.insert(result.end(), part->begin(), part->end());
  }
  c.set_elements(0, std::move(result));
}

void values_constant_of_shape(Context& c) {
  const ConstantPtr value = c.node().constant("value");
  const auto element = value ? integers_of(*value) : std::nullopt;
  if (element) c.set_elements(0, Dims(static_cast<size_t>(result_shape(c).elements()), Dim(element->front())));
}

void values_range(Context& c) {
  const Dims* start = c.elements(0);
  const Dims* delta = c.elements(2);
  if (!start || !delta || start->empty() || delta->empty()) return;
  Dims result;
  for (int64_t i = 0; i < result_shape(c)[0]; ++i) result.push_back(start->front() + Dim(i) * delta->front());
  c.set_elements(0, std::move(result));
}

void values_expand(Context& c) {
  if (auto wide = broadcast_elements(c, 0, result_shape(c))) c.set_elements(0, std::move(*wide));
}

void values_reduce_prod(Context& c) {
  const Dims* data = c.elements(0);
  if (!data || result_shape(c).elements() != 1) return;
  c.set_elements(0, {product(*data)});
}

}  // namespace serin::graph
