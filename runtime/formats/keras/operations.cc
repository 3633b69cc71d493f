// operations.cc: functions of keras.ops between layers. Their arguments are in the call, where tensors and numbers stand side by side.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

bool is_tensor(Json argument) { return argument["class_name"].text_or("") == "__keras_tensor__"; }

/// The shape of lists in lists, from the first of each.
bool append_shape(Json value, Shape& shape) {
  if (!value.is_array()) return true;
  if (shape.rank() >= Shape::kMaxRank) return false;
  shape.push_back(static_cast<int64_t>(value.size()));
  return value.size() == 0 || append_shape(*value.items().begin(), shape);
}

bool append_elements(Json value, std::vector<double>& elements) {
  if (!value.is_array()) {
    const auto truth = value.boolean();
    const auto number = truth ? std::optional<double>(*truth ? 1 : 0) : value.number();
    if (number) elements.push_back(*number);
    return number.has_value();
  }
  for (const Json& each : value.items())
    if (!append_elements(each, elements)) return false;
  return true;
}

/// A tensor that is written into the call.
ValuePtr written_tensor(Layer& layer, Json config) {
  Shape shape;
  std::vector<double> elements;
  const std::string type = config["dtype"].text_or("float32");
  const bool whole = append_shape(config["value"], shape) && append_elements(config["value"], elements) &&
                     static_cast<int64_t>(elements.size()) == shape.elements();
  const bool integers = type == "int32" || type == "int64";
  if (!whole || (!integers && type != "float32" && type != "bool")) {
    layer.unsupported(fmt::format("a constant of {}", type));
    return layer.number_of(0);
  }
  if (type == "float32") return layer.floats({elements.begin(), elements.end()}, shape);
  const std::vector<int64_t> numbers(elements.begin(), elements.end());
  const ValueId id = layer.b().constant(graph::make_constant(DType::kInt64, shape, numbers.data()));
  return tf::plain_value(layer.b().cast(id, type == "bool" ? DType::kBool : type == "int32" ? DType::kInt32 : DType::kInt64));
}

/// Argument `place`, or that of the name: a tensor of the call, a tensor that is written there, or a number of the type `like`.
ValuePtr argument(Layer& layer, size_t place, std::string_view name, DType like = DType::kFloat32) {
  const auto made = [&](Json each) -> ValuePtr {
    const std::string kind = each["class_name"].text_or("");
    if (kind == "__tensor__" || kind == "__numpy__") return written_tensor(layer, each["config"]);
    const auto number = each.number();
    if (!number) {
      layer.unsupported(fmt::format("argument '{}' is neither a tensor nor a number", name));
      return layer.number_of(0);
    }
    const bool whole = each.integer().has_value() && (like == DType::kInt32 || like == DType::kInt64);
    return whole ? tf::plain_value(layer.b().number(like, *number)) : layer.number_of(*number);
  };
  size_t at = 0, tensors = 0;
  for (const Json& each : layer.call()["args"].items()) {
    if (at++ == place) return is_tensor(each) ? layer.value(tensors) : made(each);
    tensors += is_tensor(each) ? 1 : 0;
  }
  if (const auto found = layer.named(name); !found.empty()) return layer.value(found.front());
  return made(layer.call()["kwargs"][name]);
}

/// The type of the first tensor of a call.
DType type_of_call(Layer& layer) { return layer.inputs() > 0 ? layer.scope().dtype(*layer.value(0)) : DType::kFloat32; }

/// A setting that is in the operation, or in its call.
Json option(const Layer& layer, std::string_view key) {
  const Json own = layer.setting(key);
  return own ? own : layer.call()["kwargs"][key];
}

void import_binary_operation(Layer& layer) {
  static constexpr std::pair<std::string_view, std::string_view> kNodes[] = {
      {"Add", "AddV2"},          {"Subtract", "Sub"},    {"Multiply", "Mul"},    {"Divide", "RealDiv"},
      {"TrueDivide", "RealDiv"}, {"Maximum", "Maximum"}, {"Minimum", "Minimum"}, {"Power", "Pow"}};
  const auto node = std::ranges::find(kNodes, std::string_view(layer.class_name()), &std::pair<std::string_view, std::string_view>::first);
  const DType like = type_of_call(layer);
  ValuePtr a = argument(layer, 0, "x1", like), b = argument(layer, 1, "x2", like);
  if (layer.failed()) return;
  const bool divides = node->second == "RealDiv";
  if (divides) a = layer.as_float(a), b = layer.as_float(b);
  if (layer.scope().dtype(*a) != layer.scope().dtype(*b)) a = layer.as_float(a), b = layer.as_float(b);
  layer.out(layer.binary(node->second, a, b));
}

void import_unary_operation(Layer& layer) {
  static constexpr std::pair<std::string_view, Op> kOps[] = {
      {"Abs", Op::kAbs},   {"Absolute", Op::kAbs},    {"Cos", Op::kCos},    {"Erf", Op::kErf},
      {"Exp", Op::kExp},   {"Floor", Op::kFloor},     {"Log", Op::kLog},    {"Negative", Op::kNeg},
      {"Sign", Op::kSign}, {"Sin", Op::kSin},         {"Sqrt", Op::kSqrt},  {"Tanh", Op::kTanh},
      {"Relu", Op::kRelu}, {"Sigmoid", Op::kSigmoid}, {"Silu", Op::kSwish}, {"Softplus", Op::kSoftplus}};
  const auto row = std::ranges::find(kOps, std::string_view(layer.class_name()), &std::pair<std::string_view, Op>::first);
  layer.out(layer.map(layer.as_float(argument(layer, 0, "x")), [&](ValueId id) { return layer.b().add(row->second, {id}); }));
}

void import_square(Layer& layer) {
  const ValuePtr x = layer.as_float(argument(layer, 0, "x"));
  layer.out(layer.binary("Mul", x, x));
}

void import_reduction(Layer& layer) {
  const std::string& name = layer.class_name();
  const std::string_view node = name == "Mean" ? "Mean" : name == "Sum" ? "Sum" : name == "Max" ? "Max" : "Min";
  const Json axis = option(layer, "axis");
  if (!axis || axis.is_null()) return layer.unsupported("reduces the batch, too");
  const List axes = layer.integers_of(axis, "axis");
  const bool keep = option(layer, "keepdims").boolean().value_or(false);
  layer.out(layer.op(node, {layer.as_float(argument(layer, 0, "x")), layer.constant(axes)}, {{"keep_dims", attr(int64_t{keep})}}));
}

/// Any and All, of truths.
void import_truth_reduction(Layer& layer) {
  graph::Builder& b = layer.b();
  const Json axis = option(layer, "axis");
  if (!axis || axis.is_null()) return layer.unsupported("reduces the batch, too");
  const List axes = layer.integers_of(axis, "axis");
  const ValueId truth = b.cast(layer.scope().plain(*argument(layer, 0, "x")), DType::kBool);
  const int64_t keep = option(layer, "keepdims").boolean().value_or(false) ? 1 : 0;
  const ValueId found = b.add(layer.class_name() == "Any" ? Op::kReduceMax : Op::kReduceMin, {b.cast(truth, DType::kFloat32)},
                              {{"axes", axes}, {"keepdims", keep}});
  layer.out(b.cast(found, DType::kBool));
}

void import_matmul_operation(Layer& layer) {
  const ValuePtr a = argument(layer, 0, "x1"), b = argument(layer, 1, "x2");
  layer.out(layer.b().add(Op::kMatMul, {layer.scope().plain(*layer.as_float(a)), layer.scope().plain(*layer.as_float(b))}));
}

void import_reshape_operation(Layer& layer) {
  List shape = layer.integers_of(option(layer, "newshape"), "newshape");
  if (shape.empty() || std::ranges::count(shape, -1) != 1 || shape[0] != -1 ||
      std::ranges::any_of(shape, [](int64_t size) { return size < -1 || size == 0; }))
    return layer.unsupported("a shape whose batch is not -1, or that has another -1");
  layer.out(layer.b().reshape(layer.scope().plain(*argument(layer, 0, "x")), shape));
}

void import_transpose_operation(Layer& layer) {
  const Json axes = option(layer, "axes");
  const ValuePtr x = argument(layer, 0, "x");
  const auto rank = layer.scope().rank(*x);
  List order = axes && !axes.is_null() ? layer.integers_of(axes, "axes") : List{};
  List sorted = order;
  std::ranges::sort(sorted);
  bool whole = rank && order.size() == *rank;
  for (size_t i = 0; whole && i < sorted.size(); ++i) whole = sorted[i] == static_cast<int64_t>(i);
  if (!whole) return layer.unsupported("axes that are no order of all axes");
  layer.out(layer.b().transpose(layer.scope().plain(*x), order));
}

void import_expand_operation(Layer& layer) {
  const ValuePtr x = argument(layer, 0, "x");
  const auto rank = static_cast<int64_t>(layer.scope().rank(*x).value_or(0));
  List axes = layer.integers_of(option(layer, "axis"), "axis");
  const bool adds = layer.class_name() == "ExpandDims";
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank + (adds ? 1 : 0);
    if (axis < 0 || axis > rank) return layer.corrupt("an axis that its input does not have");
  }
  const ValueId id = layer.scope().plain(*x);
  layer.out(adds ? layer.b().unsqueeze(id, axes) : layer.b().squeeze(id, axes));
}

void import_concatenate_operation(Layer& layer) {
  const Json axis = option(layer, "axis");
  std::vector<ValuePtr> operands;
  operands.reserve(layer.inputs());
  for (size_t i = 0; i < layer.inputs(); ++i) operands.push_back(layer.value(i));
  if (operands.empty()) return layer.corrupt("joins nothing");
  operands.push_back(
      tf::plain_value(layer.b().constant(graph::make_scalar(DType::kInt64, static_cast<double>(axis.integer().value_or(0))))));
  layer.out(layer.op("ConcatV2", std::move(operands)));
}

void import_softmax_operation(Layer& layer) {
  const Json axis = option(layer, "axis");
  layer.out(layer.b().add(Op::kSoftmax, {layer.scope().plain(*layer.as_float(argument(layer, 0, "x")))},
                          {{"axis", axis.integer().value_or(-1)}}));
}

void import_comparison(Layer& layer) {
  static constexpr std::pair<std::string_view, std::string_view> kNodes[] = {
      {"Equal", "Equal"}, {"Greater", "Greater"},     {"GreaterEqual", "GreaterEqual"},
      {"Less", "Less"},   {"LessEqual", "LessEqual"}, {"NotEqual", "NotEqual"}};
  const auto node = std::ranges::find(kNodes, std::string_view(layer.class_name()), &std::pair<std::string_view, std::string_view>::first);
  const DType like = type_of_call(layer);
  layer.out(layer.binary(node->second, argument(layer, 0, "x1", like), argument(layer, 1, "x2", like)));
}

void import_logic(Layer& layer) {
  graph::Builder& b = layer.b();
  const auto truth = [&](size_t place, std::string_view name) {
    return b.cast(layer.scope().plain(*argument(layer, place, name)), DType::kBool);
  };
  if (layer.class_name() == "LogicalNot") return layer.out(b.add(Op::kNot, {truth(0, "x")}));
  layer.out(b.add(layer.class_name() == "LogicalAnd" ? Op::kAnd : Op::kOr, {truth(0, "x1"), truth(1, "x2")}));
}

void import_where(Layer& layer) {
  const DType like = layer.inputs() > 1 ? layer.scope().dtype(*layer.value(1)) : DType::kFloat32;
  const ValuePtr condition = argument(layer, 0, "condition");
  layer.out(layer.op("SelectV2", {condition, argument(layer, 1, "x1", like), argument(layer, 2, "x2", like)}));
}

void import_gelu(Layer& layer) {
  const std::string mode = option(layer, "approximate").boolean().value_or(true) ? "tanh" : "none";
  layer.out(layer.map(layer.as_float(argument(layer, 0, "x")),
                      [&](ValueId id) { return layer.b().add(Op::kGelu, {id}, {{"approximate", mode}}); }));
}

/// x[key]: numbers, slices, new axes and an ellipsis.
void import_get_item(Layer& layer) {
  graph::Builder& b = layer.b();
  std::vector<Json> keys;
  size_t at = 0;
  for (const Json& each : layer.call()["args"].items())
    if (at++ == 1) keys.push_back(each);
  if (keys.empty()) keys.push_back(layer.call()["kwargs"]["key"]);
  if (const Json only = keys.front(); only.is_array()) {
    keys.clear();
    for (const Json& each : only.items()) keys.push_back(each);
  }
  const auto rank = layer.rank(0);
  const auto is_ellipsis = [](Json key) { return key["class_name"].text_or("") == "__ellipsis__"; };
  const auto real = static_cast<size_t>(std::ranges::count_if(keys, [&](Json key) { return !key.is_null() && !is_ellipsis(key); }));
  if (!rank || real > *rank) return layer.corrupt("more indices than axes");
  List starts, ends, steps, axes, added;
  std::vector<std::pair<int64_t, int64_t>> picked;  // axis, index
  int64_t axis = 0, place = 0;
  for (const Json& key : keys) {
    if (is_ellipsis(key)) {
      axis += static_cast<int64_t>(*rank - real);
      place += static_cast<int64_t>(*rank - real);
      continue;
    }
    if (key.is_null()) {
      added.push_back(place++);
      continue;
    }
    const auto number = key.integer();
    const Json slice = key["config"];
    if (!number && key["class_name"].text_or("") != "__slice__") return layer.unsupported("an index that is neither a number nor a slice");
    if (number) {
      picked.emplace_back(axis++, *number);
      continue;
    }
    const int64_t step = slice["step"].integer().value_or(1);
    if (step == 0) return layer.corrupt("a slice of step 0");
    const auto start = slice["start"].integer(), stop = slice["stop"].integer();
    if (start || stop || step != 1) {
      starts.push_back(start.value_or(step > 0 ? 0 : INT64_MAX));
      ends.push_back(stop.value_or(step > 0 ? INT64_MAX : INT64_MIN + 1));
      steps.push_back(step);
      axes.push_back(axis);
    }
    ++place;
    ++axis;
  }
  ValueId x = layer.plain(0);
  if (!axes.empty()) x = b.add(Op::kSlice, {x}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
  std::ranges::reverse(picked);  // from the last axis on, as each drops its own
  for (const auto& [at_axis, number] : picked) {
    const ValueId index = b.constant(graph::make_scalar(DType::kInt64, static_cast<double>(number)));
    x = b.add(Op::kGather, {x, index}, {{"axis", at_axis}});
  }
  layer.out(added.empty() ? x : b.unsqueeze(x, added));
}

/// The type that an operation says, or else that of its input. Undefined, with an error, where it is none.
DType type_option(Layer& layer, DType own) {
  const Json given = option(layer, "dtype");
  if (!given || given.is_null()) return own;
  const std::string name = given.text_or("?");
  const DType type = dtype_named(name), narrow = narrow_named(name);
  layer.set_declared(narrow);
  if (narrow != DType::kUndefined) return DType::kFloat32;  // as all that Keras has in 16 bits
  if (type == DType::kFloat32 || type == DType::kInt32 || type == DType::kInt64 || type == DType::kBool) return type;
  layer.unsupported(fmt::format("dtype '{}'", name));
  return DType::kUndefined;
}

/// Cast, and ConvertToTensor of what is one.
void import_cast_operation(Layer& layer) {
  const ValuePtr x = argument(layer, 0, "x");
  const DType type = type_option(layer, layer.class_name() == "Cast" ? DType::kUndefined : layer.scope().dtype(*x));
  if (layer.failed()) return;
  if (type == DType::kUndefined) return layer.corrupt("casts to no type");
  layer.out(layer.map(x, [&](ValueId id) { return layer.b().cast(id, type); }));
}

void import_like_operation(Layer& layer) {
  graph::Builder& b = layer.b();
  const ValueId x = layer.scope().plain(*argument(layer, 0, "x")), shape = b.add(Op::kShape, {x});
  const DType type = type_option(layer, b.dtype(x));
  if (layer.failed()) return;
  layer.out(b.add(Op::kExpand, {b.number(type, layer.class_name() == "OnesLike" ? 1 : 0), shape}));
}

void import_cumulative_sum(Layer& layer) {
  graph::Builder& b = layer.b();
  const ValueId x = layer.scope().plain(*argument(layer, 0, "x"));
  const auto rank = b.rank(x);
  const auto axis = option(layer, "axis").integer();
  if (!axis || !rank || *axis < -static_cast<int64_t>(*rank) || *axis >= static_cast<int64_t>(*rank))
    return layer.unsupported("sums over all axes");
  const ValueId along = b.number(DType::kInt64, static_cast<double>(*axis < 0 ? *axis + static_cast<int64_t>(*rank) : *axis));
  layer.out(b.add(Op::kCumSum, {x, along}, {{"exclusive", int64_t{0}}, {"reverse", int64_t{0}}}));
}

constexpr LayerRow kOperations[] = {
    {"Abs", import_unary_operation},
    {"Absolute", import_unary_operation},
    {"Add", import_binary_operation},
    {"All", import_truth_reduction},
    {"Any", import_truth_reduction},
    {"Concatenate", import_concatenate_operation},
    {"Cast", import_cast_operation},
    {"ConvertToTensor", import_cast_operation},
    {"Cos", import_unary_operation},
    {"Cumsum", import_cumulative_sum},
    {"Divide", import_binary_operation},
    {"Equal", import_comparison},
    {"Erf", import_unary_operation},
    {"Exp", import_unary_operation},
    {"ExpandDims", import_expand_operation},
    {"Floor", import_unary_operation},
    {"Gelu", import_gelu},
    {"GetItem", import_get_item},
    {"Greater", import_comparison},
    {"GreaterEqual", import_comparison},
    {"Less", import_comparison},
    {"LessEqual", import_comparison},
    {"Log", import_unary_operation},
    {"LogicalAnd", import_logic},
    {"LogicalNot", import_logic},
    {"LogicalOr", import_logic},
    {"Matmul", import_matmul_operation},
    {"Max", import_reduction},
    {"Maximum", import_binary_operation},
    {"Mean", import_reduction},
    {"Min", import_reduction},
    {"Minimum", import_binary_operation},
    {"Multiply", import_binary_operation},
    {"Negative", import_unary_operation},
    {"NotEqual", import_comparison},
    {"OnesLike", import_like_operation},
    {"Power", import_binary_operation},
    {"Relu", import_unary_operation},
    {"Reshape", import_reshape_operation},
    {"Sigmoid", import_unary_operation},
    {"Sign", import_unary_operation},
    {"Silu", import_unary_operation},
    {"Sin", import_unary_operation},
    {"Softmax", import_softmax_operation},
    {"Softplus", import_unary_operation},
    {"Sqrt", import_unary_operation},
    {"Square", import_square},
    {"Squeeze", import_expand_operation},
    {"Subtract", import_binary_operation},
    {"Sum", import_reduction},
    {"Tanh", import_unary_operation},
    {"Transpose", import_transpose_operation},
    {"TrueDivide", import_binary_operation},
    {"Where", import_where},
    {"ZerosLike", import_like_operation},
};

}  // namespace

std::span<const LayerRow> operations() { return kOperations; }

}  // namespace serin::formats::keras
