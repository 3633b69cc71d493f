// movement_operators.cc: operators that move elements. Slices are in slice_operators.cc.
//
// Constants are reshaped here at once: layers write their parameters as [1, 1, 1, c], and patterns look for vectors.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/tensorflow/elementwise.h"
#include "runtime/formats/tensorflow/operators.h"
#include "runtime/formats/tensorflow/slice.h"
#include "runtime/formats/tensorflow/space.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

void import_identity(NodeImport& n, Op) { n.out_value(n.value(0)); }

void import_identities(NodeImport& n, Op) {
  for (size_t i = 0; i < n.inputs(); ++i) n.out_value(n.value(i));
}

/// The constant operand in a new shape, where the numbers allow it.
bool reshape_constant(NodeImport& n, List shape) {
  const graph::ConstantPtr constant = n.scope().graph().constant(n.in(0));
  if (!constant || constant->dtype == DType::kString || !Shape::fits(shape.size())) return false;
  int64_t product = 1;
  int64_t* open = nullptr;
  for (int64_t& size : shape) {
    if (size < -1 || (size == -1 && open)) return false;
    if (size == -1)
      open = &size;
    else if (__builtin_mul_overflow(product, size, &product))
      return false;
  }
  if (open && product > 0) *open = constant->elements() / product;
  Shape made;
  for (const int64_t size : shape) made.push_back(size);
  if (made.checked_elements() != constant->elements()) return false;
  n.out(n.scope().reshaped(n.in(0), made));
  return true;
}

/// A layer over the last axis is written as Reshape to a matrix, MatMul, Reshape back: that is a MatMul.
bool is_layer(NodeImport& n) {
  graph::Builder& b = n.builder();
  const graph::Graph& graph = n.scope().graph();
  if (n.prefers_first(0)) return false;
  const graph::NodeId product = graph.producer(n.in(0));
  if (!graph.is(product, Op::kMatMul)) return false;
  const graph::NodeId matrix = graph.producer(graph.input(product, 0));
  const ValueId weight = graph.input(product, 1);
  const graph::Dims* const wanted = b.elements(n.in(1));
  if (!graph.is(matrix, Op::kReshape) || b.rank(weight) != 2 || !wanted) return false;
  const ValueId x = graph.input(matrix, 0);
  const auto& dims = b.dims(x);
  if (!dims || dims->size() < 3 || dims->size() != wanted->size() || !(dims->back() == (*b.dims(weight))[0])) return false;
  if (!(wanted->back() == (*b.dims(weight))[1]) || !std::equal(dims->begin(), dims->end() - 1, wanted->begin())) return false;
  n.out(b.add(Op::kMatMul, {x, weight}));
  return true;
}

/// [n, c] -> [n, 1, 1, c] gives back the image of one pixel that was flattened before.
bool is_pixel(NodeImport& n, const graph::Dims& wanted) {
  const graph::Graph& graph = n.scope().graph();
  if (n.prefers_first(0) || n.rank(0) != 2 || wanted.size() < 3) return false;
  const graph::NodeId flatten = graph.producer(n.in(0));
  if (!graph.is(flatten, Op::kFlatten)) return false;
  const ValueId image = graph.input(flatten, 0);
  const ValuePtr value = std::make_shared<Value>(Value{.plain = kNone, .first = image, .resource = nullptr, .list = nullptr});
  const auto dims = n.scope().dims(*value);
  if (!dims || dims->size() != wanted.size()) return false;
  for (size_t axis = 1; axis < wanted.size(); ++axis)
    if (!((*dims)[axis] == wanted[axis]) || (axis + 1 < wanted.size() && (*dims)[axis].value() != 1)) return false;
  n.out_value(value);
  return true;
}

void import_reshape(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  if (const graph::Dims* const wanted = b.elements(n.in(1)); wanted && is_pixel(n, *wanted)) return;
  const auto known = n.known(1);
  if (known && reshape_constant(n, *known)) return;
  if (is_layer(n)) return;
  const ValueId x = n.in(0);
  if (known)
    return n.out(b.add(Op::kReshape, {x, b.integers(*known)}, {{"allowzero", int64_t{std::ranges::find(*known, 0) != known->end()}}}));
  // One size that is known only at run time follows from the others.
  const graph::Dims* const elements = b.elements(n.in(1));
  if (elements && std::ranges::count_if(*elements, [](const graph::Dim& dim) { return !dim.known() || dim.value() == -1; }) == 1 &&
      std::ranges::find(*elements, graph::Dim(0)) == elements->end()) {
    List shape;
    for (const graph::Dim& dim : *elements) shape.push_back(dim.value().value_or(-1));
    return n.out(b.reshape(x, shape));
  }
  n.out(b.add(Op::kReshape, {x, n.i64(1)}));
}

void import_expand_dims(NodeImport& n, Op) {
  const auto rank = n.rank(0);
  const List axis = n.needed(1, "axes");
  if (!rank || axis.size() != 1) return n.unsupported("an unknown axis");
  const int64_t at = n.axis(axis[0], *rank + 1);
  if (n.value(0)->apart && at == 1) return expand_line(n);
  if (n.prefers_first(0) && at > 0 && at < static_cast<int64_t>(*rank))
    return n.out_first(n.builder().unsqueeze(n.first(0), {place_in_first(at, *rank + 1)}));
  const auto dims = n.dims(0);
  List shape;
  for (const graph::Dim& dim : *dims) shape.push_back(dim.value().value_or(-2));
  shape.insert(shape.begin() + at, 1);
  if (!n.prefers_first(0) && reshape_constant(n, shape)) return;
  n.out(n.builder().unsqueeze(n.in(0), {at}));
}

void import_squeeze(NodeImport& n, Op) {
  const auto dims = n.dims(0);
  if (!dims) return n.unsupported("a tensor of unknown rank");
  List axes = n.integers("squeeze_dims");
  if (axes.empty()) axes = n.integers("axis");
  for (int64_t& axis : axes) axis = n.axis(axis, dims->size());
  if (axes.empty())
    for (size_t axis = 0; axis < dims->size(); ++axis)
      if ((*dims)[axis].value() == 1) axes.push_back(static_cast<int64_t>(axis));
  std::ranges::sort(axes);
  if (axes.empty()) return n.out_value(n.value(0));
  if (n.value(0)->apart && axes == List{1}) return squeeze_line(n);
  const auto last = static_cast<int64_t>(dims->size()) - 1;
  if (n.prefers_first(0) && axes.front() > 0 && axes.back() < last && dims->size() - axes.size() >= 3) {
    for (int64_t& axis : axes) axis = place_in_first(axis, dims->size());
    const graph::Graph& graph = n.scope().graph();
    const graph::NodeId widened = graph.producer(n.first(0));
    const bool undone = graph.is(widened, Op::kUnsqueeze) && graph.node(widened).integers("axes") == axes;
    return n.out_first(undone ? graph.input(widened, 0) : n.builder().squeeze(n.first(0), axes));
  }
  List shape;
  for (size_t axis = 0; axis < dims->size(); ++axis)
    if (!std::ranges::binary_search(axes, static_cast<int64_t>(axis))) shape.push_back((*dims)[axis].value().value_or(-2));
  if (!n.prefers_first(0) && reshape_constant(n, shape)) return;
  n.out(n.builder().squeeze(n.in(0), axes));
}

void import_transpose(NodeImport& n, Op) {
  const auto rank = n.rank(0);
  List order = n.needed(1, "axes");
  if (!rank || order.size() != *rank) return n.unsupported("an unknown order of axes");
  for (int64_t& axis : order) axis = n.axis(axis, *rank);
  List to_first = {0, static_cast<int64_t>(*rank) - 1};
  for (size_t axis = 1; axis + 1 < *rank; ++axis) to_first.push_back(static_cast<int64_t>(axis));
  if (n.prefers_first(0) && order == to_first) return n.out(n.first(0));
  List to_last = {0};
  for (size_t axis = 2; axis < *rank; ++axis) to_last.push_back(static_cast<int64_t>(axis));
  to_last.push_back(1);
  if (*rank >= 3 && order == to_last && !n.scope().graph().constant(n.in(0))) {
    const ValueId x = n.in(0);  // which is the result with its channels first
    return n.out_first(x);
  }
  const ValueId x = n.in(0);
  n.out(n.scope().graph().constant(x) ? n.scope().permuted(x, order) : n.builder().transpose(x, order));
}

/// A shape of sizes that the inputs have, made from them: a second reader would keep a value from being fused. kNone where that cannot be.
ValueId shape_from_inputs(NodeImport& n, const graph::Dims& dims) {
  graph::Builder& b = n.builder();
  const graph::Graph& graph = n.scope().graph();
  struct Place {
    ValueId input;
    int64_t axis;
  };
  std::vector<std::optional<Place>> places;
  for (const graph::Dim& dim : dims) {
    std::optional<Place> place;
    for (const ValueId input : graph.inputs()) {
      const auto& shape = b.dims(input);
      const auto found = shape && !place ? std::ranges::find(*shape, dim) : graph::Dims::const_iterator();
      if (shape && !place && found != shape->end()) place = Place{input, found - shape->begin()};
    }
    if (!dim.known() && !place) return kNone;
    places.push_back(dim.known() ? std::nullopt : place);
  }
  std::vector<ValueId> parts;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (!places[axis])
      parts.push_back(b.integers({*dims[axis].value()}));
    else
      parts.push_back(b.slice(b.add(Op::kShape, {places[axis]->input}), 0, places[axis]->axis, places[axis]->axis + 1));
  }
  return parts.size() == 1 ? parts[0] : b.add(Op::kConcat, parts, {{"axis", int64_t{0}}});
}

void import_shape(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const DType to = n.dtype_attr("out_type", DType::kInt32);
  for (size_t i = 0; i < n.inputs(); ++i) {
    const auto rank = n.rank(i);
    ValueId shape = kNone;
    const bool computed =
        rank && *rank >= 3 && n.scope().graph().producer(n.value(i)->plain != kNone ? n.value(i)->plain : n.value(i)->first) != kNone;
    if (computed) shape = shape_from_inputs(n, *n.dims(i));
    if (shape != kNone) {
      n.out(b.cast(shape, to));
      continue;
    }
    if (n.prefers_first(i) && rank) {
      List order = {0};
      for (size_t axis = 2; axis < *rank; ++axis) order.push_back(static_cast<int64_t>(axis));
      order.push_back(1);
      shape = b.add(Op::kGather, {b.add(Op::kShape, {n.first(i)}), b.integers(order)}, {{"axis", int64_t{0}}});
    } else {
      shape = b.add(Op::kShape, {n.in(i)});
    }
    n.out(b.cast(shape, to));
  }
}

void import_size(NodeImport& n, Op op) {
  n.out(n.builder().cast(n.builder().add(op, {n.any(0)}), n.dtype_attr("out_type", DType::kInt32)));
}

void import_rank(NodeImport& n, Op) {
  const auto rank = n.rank(0);
  if (!rank) return n.unsupported("a tensor of unknown rank");
  n.out(n.builder().constant(graph::make_scalar(DType::kInt32, static_cast<double>(*rank))));
}

void import_fill(NodeImport& n, Op) { n.out(n.builder().add(Op::kExpand, {n.in(1), n.i64(0)})); }

void import_broadcast_to(NodeImport& n, Op) { n.out(n.builder().add(Op::kExpand, {n.in(0), n.i64(1)})); }

void import_like(NodeImport& n, Op) {
  const double number = n.def().op == "OnesLike" ? 1 : 0;
  const ValueId x = n.any(0);
  n.out_like(0, n.builder().add(Op::kExpand, {n.builder().number(n.dtype(0), number), n.builder().add(Op::kShape, {x})}));
}

void import_tile(NodeImport& n, Op op) { n.out(n.builder().add(op, {n.in(0), n.i64(1)})); }

void import_range(NodeImport& n, Op op) { n.out(n.builder().add(op, {n.in(0), n.in(1), n.in(2)})); }

void import_pad(NodeImport& n, Op op) {
  const auto rank = n.rank(0);
  const List pairs = n.needed(1, "pads");
  if (!rank || pairs.size() != 2 * *rank) return n.unsupported("unknown pads");
  std::string mode = "constant";
  if (n.def().op == "MirrorPad") {
    if (n.text("mode") != "REFLECT") return n.unsupported(fmt::format("mode {}", n.text("mode")));
    mode = "reflect";
  }
  double value = 0;
  if (n.inputs() > 2) {
    const graph::ConstantPtr constant = n.scope().graph().constant(n.in(2));
    const auto number = constant ? graph::number_of(*constant) : std::nullopt;
    if (!number) return n.unsupported("a computed value of the padding");
    value = *number;
  }
  const bool inner = *rank >= 3 && pairs[0] == 0 && pairs[1] == 0 && pairs[2 * *rank - 2] == 0 && pairs[2 * *rank - 1] == 0;
  const bool first = n.prefers_first(0) || (inner && *rank == 4 && is_float(n.dtype(0)));
  List pads(2 * *rank), spatial(2 * (*rank < 3 ? 0 : *rank - 2));
  for (size_t axis = 0; axis < *rank; ++axis) {
    const auto place = first ? static_cast<size_t>(place_in_first(static_cast<int64_t>(axis), *rank)) : axis;
    pads[place] = pairs[2 * axis];
    pads[*rank + place] = pairs[2 * axis + 1];
    if (!inner || axis == 0 || axis + 1 == *rank) continue;
    spatial[axis - 1] = pairs[2 * axis];
    spatial[*rank - 2 + axis - 1] = pairs[2 * axis + 1];
  }
  const ValueId x = first ? n.first(0) : n.in(0);
  graph::Attributes attributes{{"pads", pads}, {"mode", mode}};
  if (mode == "constant") attributes.emplace("value", value);
  const ValueId padded = n.builder().add(op, {x}, std::move(attributes));
  const bool sizes = std::ranges::all_of(spatial, [](int64_t pad) { return pad >= 0 && pad <= INT32_MAX; });
  if (first && inner && sizes && mode == "constant" && value == 0) n.scope().padded[padded] = {x, spatial};
  first ? n.out_first(padded) : n.out(padded);
}

void import_reverse(NodeImport& n, Op) {
  const auto rank = n.rank(0);
  if (!rank) return n.unsupported("a tensor of unknown rank");
  const List axes = n.axes(1, *rank);
  if (axes.empty()) return n.out_value(n.value(0));
  const List starts(axes.size(), -1), ends(axes.size(), INT64_MIN), steps(axes.size(), -1);
  n.out(n.builder().add(Op::kSlice, {n.in(0)}, {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}));
}

constexpr OperatorRow kMovement[] = {
    {"BatchToSpaceND", 3, 3, import_batch_to_space},
    {"BroadcastTo", 2, 2, import_broadcast_to},
    {"CheckNumerics", 1, 1, import_identity},
    {"EnsureShape", 1, 1, import_identity},
    {"ExpandDims", 2, 2, import_expand_dims},
    {"Fill", 2, 2, import_fill},
    {"Identity", 1, 1, import_identity},
    {"IdentityN", 1, -1, import_identities},
    {"MirrorPad", 2, 2, import_pad, Op::kPad},
    {"OnesLike", 1, 1, import_like},
    {"Pad", 2, 2, import_pad, Op::kPad},
    {"PadV2", 3, 3, import_pad, Op::kPad},
    {"PlaceholderWithDefault", 1, 1, import_identity},
    {"PreventGradient", 1, 1, import_identity},
    {"Range", 3, 3, import_range, Op::kRange},
    {"Rank", 1, 1, import_rank},
    {"Reshape", 2, 2, import_reshape},
    {"ReverseV2", 2, 2, import_reverse},
    {"Shape", 1, 1, import_shape},
    {"ShapeN", 1, -1, import_shape},
    {"Size", 1, 1, import_size, Op::kSize},
    {"Slice", 3, 3, import_slice},
    {"Snapshot", 1, 1, import_identity},
    {"SpaceToBatchND", 3, 3, import_space_to_batch},
    {"Squeeze", 1, 1, import_squeeze},
    {"StopGradient", 1, 1, import_identity},
    {"StridedSlice", 4, 4, import_strided_slice},
    {"Tile", 2, 2, import_tile, Op::kTile},
    {"Transpose", 2, 2, import_transpose},
    {"ZerosLike", 1, 1, import_like},
};

}  // namespace

std::span<const OperatorRow> movement_operators() { return kMovement; }

}  // namespace serin::formats::tf
