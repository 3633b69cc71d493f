// creation.cc: operators that make tensors from sizes and numbers.

#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

constexpr int64_t kMostInline = 4096;  // elements of a constant that is written out

/// The numeric attribute of fill_constant; a text holds what a float cannot.
double fill_value(const Node& node) {
  const std::string word = node.has("str_value") ? node.text("str_value", "") : "";
  if (word.empty()) return node.number("value|fill_value", 0);
  return std::strtod(word.c_str(), nullptr);
}

graph::ConstantPtr filled(Node& node, DType dtype, double value, const Shape& shape) {
  const graph::ConstantPtr one = graph::make_scalar(dtype, value);
  const auto count = shape.checked_elements();
  if (!one || !count || *count > kMostInline) return nullptr;
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(dtype, shape, &memory);
  const auto from = one->data();
  for (int64_t i = 0; i < *count; ++i) std::copy_n(from.get(), dtype_size(dtype), memory + static_cast<size_t>(i) * dtype_size(dtype));
  (void)node;
  return result;
}

/// A tensor of these sizes (i64 of rank 1) with one number in it.
ValueId fill(Node& node, ValueId sizes, DType dtype, std::optional<double> value, ValueId computed = kNone) {
  if (!value) return node.b.add(Op::kExpand, {node.b.cast(computed, dtype), sizes});
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return node.b.cast(fill(node, sizes, DType::kFloat32, value), dtype);
  if (const auto known = node.b.known_integers(sizes); known && Shape::fits(known->size()))
    if (const graph::ConstantPtr constant = filled(node, dtype, *value, Shape(*known))) return node.b.constant(constant);
  const graph::ConstantPtr element = filled(node, dtype, *value, Shape{1});
  if (!element) {
    node.refuse("numbers of this type");
    return node.b.number(DType::kFloat32, 0);
  }
  return node.b.add(Op::kConstantOfShape, {sizes}, {{"value", element}});
}

void import_full(Node& node, Op /*op*/) {
  const ValueId sizes = node.list("shape", "ShapeTensor ShapeTensorList Shape");
  if (sizes == kNone) return node.corrupt("fill_constant without a shape");
  const DType dtype = node.dtype("dtype", DType::kFloat32);
  const ValueId tensor = node.maybe("ValueTensor");
  const auto value = tensor == kNone ? std::optional(fill_value(node)) : node.known_number("value", "ValueTensor", 0);
  node.out("Out", fill(node, sizes, dtype, value, tensor));
}

void import_full_int_array(Node& node, Op /*op*/) {
  const auto values = node.integers("value");
  if (!values) return node.corrupt("full_int_array without values");
  node.out("Out", node.b.cast(node.b.integers(*values), node.dtype("dtype", DType::kInt64)));
}

void import_full_like(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const std::string& type = node.source().type;
  const DType dtype = node.dtype("dtype", node.b.dtype(x));
  std::optional<double> value = node.known_number("value", "ValueTensor", type == "ones_like" ? 1 : 0);
  node.out("Out", fill(node, node.shape_of(x), dtype, value, node.maybe("ValueTensor")));
}

/// fill_constant_batch_size_like: one size is that of another tensor.
void import_full_batch_like(Node& node, Op /*op*/) {
  const ValueId x = node.in("Input");
  const auto shape = node.integers("shape");
  if (!shape || shape->empty()) return node.corrupt("no shape");
  const int64_t to = node.axis(node.integer("output_dim_idx", 0), shape->size());
  std::vector<ValueId> parts;
  parts.reserve(shape->size());
  for (size_t i = 0; i < shape->size(); ++i)
    parts.push_back(static_cast<int64_t>(i) == to ? node.size_of(x, node.integer("input_dim_idx", 0)) : node.b.integers({(*shape)[i]}));
  node.out("Out", fill(node, node.concat(parts, 0), node.dtype("dtype", DType::kFloat32), fill_value(node)));
}

void import_assign_value(Node& node, Op /*op*/) {
  const List shape = node.integers("shape").value_or(List{});
  const DType dtype = node.dtype("dtype", DType::kFloat32);
  std::vector<double> values;
  List integers;
  constexpr const char* kLists[] = {"values", "fp32_values", "int32_values", "int64_values", "bool_values", "fp64_values", "int8_values"};
  for (const char* const name : kLists) {
    if (!node.has(name)) continue;
    const auto some = node.numbers(name);
    if (!some || some->empty()) continue;
    values = *some;
    const auto* const whole = std::get_if<List>(&node.source().attributes.find(name)->second);
    integers = whole ? *whole : List(values.begin(), values.end());
  }
  if (!Shape::fits(shape.size())) return node.corrupt("a shape of too high rank");
  const auto count = Shape(shape).checked_elements();
  if (!count || static_cast<size_t>(*count) != values.size()) return node.corrupt("values that do not fill their shape");
  if (dtype == DType::kInt64) return node.out("Out", node.b.constant(graph::make_constant(dtype, Shape(shape), integers.data())));
  std::byte* memory = nullptr;
  auto result = graph::make_mutable_constant(dtype, Shape(shape), &memory);
  for (size_t i = 0; i < values.size(); ++i) {
    const graph::ConstantPtr one = graph::make_scalar(dtype, values[i]);
    if (!one) return node.refuse("assigned values of this type");
    std::copy_n(one->data().get(), dtype_size(dtype), memory + i * dtype_size(dtype));
  }
  node.out("Out", node.b.constant(result));
}

void import_range(Node& node, Op op) {
  const DType dtype = node.dtype("dtype", node.b.dtype(node.in("Start")));
  const auto end = [&](std::string_view slot) {
    const ValueId value = node.b.cast(node.in(slot), dtype);
    return node.b.rank(value) == size_t{0} ? value : node.b.reshape(value, {});
  };
  node.out("Out", node.b.add(op, {end("Start"), end("End"), end("Step")}));
}

/// start + i * (stop - start) / (n - 1)
void import_linspace(Node& node, Op /*op*/) {
  const auto start = node.known_number("start", "Start", 0), stop = node.known_number("stop", "Stop", 0),
             count = node.known_number("num", "Num", 1);
  if (!start || !stop || !count || *count < 1 || *count > 1e6) return node.refuse("linspace whose bounds are computed");
  std::vector<double> values;
  values.reserve(static_cast<size_t>(*count));
  for (double i = 0; i < *count; ++i) values.push_back(*count == 1 ? *start : *start + i * (*stop - *start) / (*count - 1));
  const ValueId all = node.floats(values, Shape{static_cast<int64_t>(values.size())});
  node.out("Out", node.b.cast(all, node.dtype("dtype", DType::kFloat32)));
}

void import_eye(Node& node, Op op) {
  const int64_t rows = node.known_integer("num_rows", "NumRows", 1), given = node.known_integer("num_columns", "NumColumns", -1);
  const DType dtype = node.dtype("dtype", DType::kFloat32);
  const ValueId zeros = fill(node, node.b.integers({rows, given < 0 ? rows : given}), dtype, 0.0);
  node.out("Out", node.unary(op, zeros));
}

void import_triangle(Node& node, Op op) {
  const bool lower = node.source().type == "tril" || (node.source().type == "tril_triu" && node.flag("lower", true));
  const ValueId diagonal = node.b.number(DType::kInt64, static_cast<double>(node.integer("diagonal", 0)));
  node.out("Out", node.b.add(op, {node.in("X"), diagonal}, {{"upper", int64_t{!lower}}}));
}

void import_one_hot(Node& node, Op op) {
  ValueId x = node.in("X");
  const DType dtype = node.dtype("dtype", DType::kFloat32);
  const auto rank = node.b.rank(x);
  if (node.source().type == "one_hot" && !node.pir() && rank && *rank > 1) x = node.b.squeeze(x, {static_cast<int64_t>(*rank) - 1});
  const ValueId depth = node.scalar("depth|num_classes", "depth_tensor", DType::kInt64, 1);
  const ValueId values = node.concat({fill(node, node.b.integers({1}), dtype, 0.0), fill(node, node.b.integers({1}), dtype, 1.0)}, 0);
  node.out("Out", node.b.add(op, {x, depth, values}, {{"axis", int64_t{-1}}}));
}

void import_shape(Node& node, Op /*op*/) {
  const DType dtype = node.source().type == "shape64" ? DType::kInt64 : DType::kInt32;
  node.out("Out", node.b.cast(node.shape_of(node.in("Input")), dtype));
}

void import_size(Node& node, Op op) {
  const ValueId size = node.unary(op, node.in("Input"));
  node.out("Out", node.out_dims("Out") == List{1} ? node.b.reshape(size, {1}) : size);
}

/// 1 before each length, 0 from there on.
void import_sequence_mask(Node& node, Op op) {
  const ValueId lengths = node.b.cast(node.in("X"), DType::kInt64);
  ValueId end = node.scalar("maxlen|max_len", "MaxLenTensor", DType::kInt64, -1);
  if (node.known_number("maxlen|max_len", "MaxLenTensor", -1).value_or(1) < 0)
    end = node.unary(Op::kReduceMax, lengths, {{"keepdims", int64_t{0}}});
  const ValueId places = node.b.add(Op::kRange, {node.b.number(DType::kInt64, 0), end, node.b.number(DType::kInt64, 1)});
  node.out("Y", node.b.cast(node.binary(op, places, node.b.unsqueeze(lengths, {-1})), node.dtype("out_dtype", DType::kInt64)));
}

/// Each input spread over a grid with one axis for each of them.
void import_meshgrid(Node& node, Op op) {
  const std::vector<ValueId>& inputs = node.all("X");
  std::vector<ValueId> columns, sizes, results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    List shape(inputs.size(), 1);
    shape[i] = -1;
    columns.push_back(node.b.reshape(inputs[i], shape));
    sizes.push_back(node.b.add(Op::kSize, {inputs[i]}));
    sizes.back() = node.b.reshape(sizes.back(), {1});
  }
  if (inputs.empty()) return node.corrupt("a grid of nothing");
  const ValueId all = node.concat(sizes, 0);
  for (const ValueId column : columns) results.push_back(node.binary(op, column, all));
  node.outs("Out", results);
}

constexpr OperatorRow kCreationRows[] = {
    {"assign_value", "assign_value", "X", "Out", import_assign_value},
    {"eye", "eye", "NumRows NumColumns", "Out", import_eye, Op::kEyeLike},
    {"fill_any_like fill_zeros_like fill_zeros_like2", "full_like ones_like zeros_like", "X ValueTensor", "Out", import_full_like},
    {"fill_constant", "full empty", "Shape", "Out", import_full},
    {"", "full_with_tensor", "ValueTensor ShapeTensor", "Out", import_full},
    {"fill_constant_batch_size_like", "full_batch_size_like", "Input", "Out", import_full_batch_like},
    {"", "full_int_array", "", "Out", import_full_int_array},
    {"linspace", "linspace", "Start Stop Num", "Out", import_linspace},
    {"meshgrid", "meshgrid", "X", "Out", import_meshgrid, Op::kExpand},
    {"one_hot one_hot_v2", "one_hot", "X depth_tensor", "Out", import_one_hot, Op::kOneHot},
    {"range", "arange range_v2", "Start End Step", "Out", import_range, Op::kRange},
    {"sequence_mask", "sequence_mask", "X MaxLenTensor", "Y", import_sequence_mask, Op::kLess},
    {"shape", "shape shape64", "Input", "Out", import_shape},
    {"size", "numel", "Input", "Out", import_size, Op::kSize},
    {"tril_triu", "tril triu", "X", "Out", import_triangle, Op::kTrilu},
};

}  // namespace

std::span<const OperatorRow> creation_operators() { return kCreationRows; }

}  // namespace serin::formats::paddle
