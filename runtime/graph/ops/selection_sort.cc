// Shape rules of operators whose result has as many elements as an operand or the data say: TopK, Unique, Compress, OneHot, NonMaxSuppression; and of
// two that only rearrange or clear: ReverseSequence, Trilu.

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// The one integer of an operand; nothing where it is not known.
Result<std::optional<Dim>> single(const Context& c, size_t operand) {
  if (const Dims* shape = c.dims(operand); shape && product(*shape).known() && !(product(*shape) == Dim(1)))
    return c.fail("operand {} has shape {}, it must be one number", operand, print(*shape));
  if (const Dims* known = c.elements(operand); known && known->size() == 1) return std::optional(known->front());
  const ConstantPtr constant = c.constant(operand);
  const auto number = constant ? number_of(*constant) : std::nullopt;
  if (!number) return std::optional<Dim>();
  if (!(*number >= 0 && *number <= static_cast<double>(kMaxElements))) return c.fail("operand {} is {}", operand, *number);
  return std::optional(Dim(static_cast<int64_t>(*number)));
}

}  // namespace

Status infer_top_k(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  SERIN_TRY(const auto k, single(c, 1));
  std::optional<Dims> result = c.type(0).shape;
  if (result) {
    SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", -1), result->size()));
    Dim& dim = (*result)[static_cast<size_t>(axis)];
    if (k && k->known() && (*k->value() < 0 || (dim.known() && *k->value() > *dim.value())))
      return c.fail("k is {}, axis {} of {} has {}", k->str(), axis, print(*c.dims(0)), dim.str());
    dim = k ? *k : c.unknown_dim(dim);
  }
  SERIN_CHECK(c.set(0, c.dtype(0), result));
  return c.set(1, DType::kInt64, std::move(result));
}

Status infer_unique(Context& c) {
  const Dims* x = c.dims(0);
  std::optional<Dims> values, firsts, inverse;
  if (x && c.node().attributes.contains("axis")) {
    SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), x->size()));
    const Dim size = (*x)[static_cast<size_t>(axis)], count = c.unknown_dim(size);
    values = *x;
    (*values)[static_cast<size_t>(axis)] = count;
    firsts = Dims{count};
    inverse = Dims{size};
  } else if (x) {
    const Dim size = product(*x), count = c.unknown_dim(size);
    values = firsts = Dims{count};
    inverse = Dims{size};
  }
  SERIN_CHECK(c.set(0, c.dtype(0), std::move(values)));
  if (c.results() > 1) SERIN_CHECK(c.set(1, DType::kInt64, firsts));
  if (c.results() > 2) SERIN_CHECK(c.set(2, DType::kInt64, std::move(inverse)));
  if (c.results() > 3) SERIN_CHECK(c.set(3, DType::kInt64, std::move(firsts)));
  return {};
}

Status infer_compress(Context& c) {
  if (c.dtype(1) != DType::kBool && c.dtype(1) != DType::kUndefined)
    return c.fail("the condition is {}, it must be bool", dtype_name(c.dtype(1)));
  if (const Dims* condition = c.dims(1); condition && condition->size() != 1)
    return c.fail("the condition has shape {}, it must be a vector", print(*condition));
  const Dims* x = c.dims(0);
  if (!c.node().attributes.contains("axis")) {
    return c.set(0, c.dtype(0), Dims{c.unknown_dim(x ? std::optional(product(*x)) : std::nullopt)});
  }
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), x->size()));
  Dims result = *x;
  result[static_cast<size_t>(axis)] = c.unknown_dim((*x)[static_cast<size_t>(axis)]);
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_one_hot(Context& c) {
  if (const Dims* values = c.dims(2); values && product(*values).known() && !(product(*values) == Dim(2)))
    return c.fail("values have shape {}, they must be two: off and on", print(*values));
  SERIN_TRY(const auto depth, single(c, 1));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(2), std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", -1), x->size() + 1));
  Dims result = *x;
  result.insert(result.begin() + axis, depth ? *depth : c.unknown_dim());
  return c.set(0, c.dtype(2), std::move(result));
}

/// [kept, 3]: in each class of each image at most as many boxes as there are, or as the limit says where it is known.
Status infer_non_max_suppression(Context& c) {
  const Dims* boxes = c.dims(0);
  const Dims* scores = c.dims(1);
  if (boxes && (boxes->size() != 3 || !unify((*boxes)[2], 4)))
    return c.fail("boxes have shape {}, they must be [batch, boxes, 4]", print(*boxes));
  if (scores && scores->size() != 3) return c.fail("scores have shape {}, they must be [batch, classes, boxes]", print(*scores));
  if (boxes && scores && (!unify((*boxes)[0], (*scores)[0]) || !unify((*boxes)[1], (*scores)[2])))
    return c.fail("boxes have shape {}, scores {}: batch and number of boxes must be equal", print(*boxes), print(*scores));
  if (!scores) return c.set(0, DType::kInt64, Dims{c.unknown_dim(), 3});
  Dim most = (*scores)[2];
  if (!c.has(2)) {
    most = 0;
  } else {
    const Dims* limit = c.elements(2);
    if (limit && limit->size() == 1 && limit->front().known()) most = min(most, max(limit->front(), 0));
  }
  return c.set(0, DType::kInt64, Dims{c.unknown_dim((*scores)[0] * (*scores)[1] * most), 3});
}

/// [batch, room, 4], [batch, room] twice, [batch]. With pad_per_class there is room for as many boxes as all classes may keep.
Status infer_combined_non_max_suppression(Context& c) {
  const Dims* boxes = c.dims(0);
  const Dims* scores = c.dims(1);
  if (boxes && (boxes->size() != 4 || !unify((*boxes)[3], 4)))
    return c.fail("boxes have shape {}, they must be [batch, boxes, sets, 4]", print(*boxes));
  if (scores && scores->size() != 3) return c.fail("scores have shape {}, they must be [batch, boxes, classes]", print(*scores));
  SERIN_TRY(const auto of_class, single(c, 2));
  SERIN_TRY(auto room, single(c, 3));
  if (room && c.node().integer("pad_per_class", 0) != 0) {
    if (of_class && scores)
      room = min(*room, *of_class * (*scores)[2]);
    else
      room.reset();
  }
  if (room && room->known() && *room->value() < 0) return c.fail("it keeps {} boxes", room->str());
  const Dim batch = scores ? scores->front() : boxes ? boxes->front() : c.unknown_dim();
  const Dim most = room ? *room : c.unknown_dim();
  SERIN_CHECK(c.set(0, DType::kFloat32, Dims{batch, most, 4}));
  SERIN_CHECK(c.set(1, DType::kFloat32, Dims{batch, most}));
  SERIN_CHECK(c.set(2, DType::kFloat32, Dims{batch, most}));
  return c.set(3, DType::kInt32, Dims{batch});
}

Status infer_reverse_sequence(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  if (const Dims* x = c.dims(0)) {
    SERIN_TRY(const int64_t batch, c.axis(c.node().integer("batch_axis", 1), x->size()));
    SERIN_TRY(const int64_t time, c.axis(c.node().integer("time_axis", 0), x->size()));
    if (batch == time) return c.fail("batch_axis and time_axis are both {}", batch);
    const Dims* lengths = c.dims(1);
    if (lengths && (lengths->size() != 1 || !unify(lengths->front(), (*x)[static_cast<size_t>(batch)])))
      return c.fail("lengths have shape {} for input of shape {}", print(*lengths), print(*x));
  }
  return c.set(0, c.dtype(0), c.type(0).shape);
}

Status infer_trilu(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  if (const Dims* x = c.dims(0); x && x->size() < 2) return c.fail("input has shape {}, it needs two axes or more", print(*x));
  SERIN_TRY([[maybe_unused]] const auto k, single(c, 1));
  return c.set(0, c.dtype(0), c.type(0).shape);
}

}  // namespace serin::graph
