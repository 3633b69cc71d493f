// arrays.cc: lists of tensors, which bodies of loops fill: create_array, array_write, array_length, array_read, array_to_tensor.
//
// A Graph has no lists that loops carry. An array is two tensors here: its elements, joined as the program joins them in the end (array_to_tensor), and the
// size of each. So a loop carries both, and elements may have different sizes. Elements are only appended: the place of a write is the array's length.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/paddle/operators.h"
#include "runtime/formats/paddle/scope.h"

namespace serin::formats::paddle {
namespace {

std::string slot_value(const std::vector<Slot>& slots, std::string_view name, size_t place) {
  for (size_t i = 0; i < slots.size(); ++i)
    if ((slots[i].name.empty() ? i == place : slots[i].name == name) && !slots[i].values.empty()) return slots[i].values[0];
  return {};
}

std::string result_of(const Node& node) { return slot_value(node.source().outputs, "Out", 0); }

int64_t integer_of(const Operation& op, std::string_view name, int64_t fallback) {
  const auto found = op.attributes.find(name);
  const auto* const value = found == op.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : fallback;
}

/// How the program joins the elements; nothing if in two ways. Arrays that are only read are stacked.
std::optional<Array> joined_as(const Program& program, std::string_view name) {
  std::optional<Array> result;
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (op.type != "array_to_tensor" && op.type != "tensor_array_to_tensor") continue;
      if (slot_value(op.inputs, "X", 0) != name) continue;
      const Array found{.axis = integer_of(op, "axis", 0), .stacks = integer_of(op, "use_stack", 0) != 0};
      if (result && (result->axis != found.axis || result->stacks != found.stacks)) return std::nullopt;
      result = found;
    }
  }
  return result ? result : Array{.axis = 0, .stacks = true};
}

/// What the program declares of the values that it appends.
const Declared* element_of(const Program& program, std::string_view name) {
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      const bool writes = (op.type == "array_write" && slot_value(op.inputs, "", 0) == name) ||
                          (op.type == "write_to_array" && slot_value(op.outputs, "Out", 0) == name);
      if (!writes) continue;
      const auto found = program.declared.find(slot_value(op.inputs, "X", 1));
      if (found != program.declared.end() && found->second.dtype != DType::kUndefined) return &found->second;
    }
  }
  return nullptr;
}

ValueId empty(graph::Builder& b, DType dtype, const List& dims) {
  return b.add(Op::kConstantOfShape, {b.integers(dims)}, {{"value", graph::make_scalar(dtype, 0)}});
}

void import_create_array(Node& node, Op /*op*/) { create_array(node.scope(), result_of(node)); }

Array* array_of(Node& node, std::string_view slot) {
  Array* const array = node.scope().array(slot_value(node.source().inputs, slot, 0));
  if (!array) node.corrupt("an array that nothing has made");
  return array;
}

void import_array_write(Node& node, Op /*op*/) {
  Scope& scope = node.scope();
  const bool pir = scope.program.pir;
  const std::string name = pir ? slot_value(node.source().inputs, "", 0) : result_of(node);
  Array* const written = scope.array(name);
  if (!written) return node.corrupt("an array that nothing has made");
  Array& array = *written;
  if (array.fixed) return node.refuse("array_write under a condition");
  // Known if nothing was appended in a loop.
  const auto length = array.lengths == kNone ? std::nullopt : node.b.size(array.lengths, 0);
  const auto end = scope.ends.find(slot_value(node.source().inputs, "I", 2));
  const auto place = node.b.known_integers(node.in("I"));
  const bool appends = end != scope.ends.end() ? scope.array(end->second) == &array : place && place->size() == 1 && length == (*place)[0];
  if (!appends) return node.refuse("array_write before the end of the array");
  ValueId piece = node.in("X");
  if (array.stacks) piece = node.b.unsqueeze(piece, {array.axis});
  array.joined = array.joined == kNone ? piece : node.concat({array.joined, piece}, array.axis);
  array.lengths = node.concat({array.lengths, node.size_of(piece, array.axis)}, 0);
  std::erase_if(scope.ends, [&](const auto& each) { return scope.array(each.second) == &array; });
  if (pir) scope.array_names[result_of(node)] = name;
}

void import_array_length(Node& node, Op /*op*/) {
  const Array* const array = array_of(node, "X");
  if (!array) return;
  const ValueId length = node.shape_of(array->lengths);
  node.out("Out", node.out_dims("Out").empty() ? node.b.reshape(length, {}) : length);
  node.scope().ends[result_of(node)] = slot_value(node.source().inputs, "X", 0);
}

/// `place`: i64 of rank 1.
void read_element(Node& node, const Array& array, ValueId place) {
  constexpr Op kRead = Op::kGather;
  if (array.joined == kNone) return node.corrupt("reads an element of an empty array");
  if (array.stacks) return node.out("Out", node.b.squeeze(node.binary(kRead, array.joined, place, {{"axis", array.axis}}), {array.axis}));
  const auto element_of = [&](ValueId list) { return node.binary(kRead, list, place, {{"axis", int64_t{0}}}); };
  const ValueId ends = node.b.add(Op::kCumSum, {array.lengths, node.b.number(DType::kInt64, 0)});
  const ValueId end = element_of(ends), begin = node.binary(Op::kSub, end, element_of(array.lengths));
  node.out("Out", node.b.add(Op::kSlice, {array.joined, begin, end, node.b.integers({array.axis})}));
}

void import_array_read(Node& node, Op /*op*/) {
  if (const Array* const array = array_of(node, "X")) read_element(node, *array, node.b.reshape(node.in("I"), {1}));
}

void import_array_to_tensor(Node& node, Op /*op*/) {
  const Array* const array = array_of(node, "X");
  if (!array) return;
  if (array->joined == kNone) return node.corrupt("array_to_tensor of an empty array");
  node.out("Out", array->joined);
  if (node.wants("OutIndex")) node.out("OutIndex", node.b.cast(array->lengths, DType::kInt32));
}

constexpr OperatorRow kArrayRows[] = {
    {"", "create_array create_array_like", "", "Out", import_create_array},
    {"lod_array_length", "array_length", "X", "Out", import_array_length},
    {"read_from_array", "array_read slice_array_dense", "X I", "Out", import_array_read},
    {"tensor_array_to_tensor", "array_to_tensor", "X", "Out OutIndex", import_array_to_tensor},
    {"write_to_array", "array_write", "Array X I", "Out", import_array_write},
};

}  // namespace

bool reads_array(Node& node) {
  const Array* const array = node.scope().array(slot_value(node.source().inputs, "Input", 0));
  if (!array) return false;
  const ValueId starts = node.list("starts", "StartsTensor");
  if (starts == kNone || node.b.size(starts, 0) != 1 || !node.integers("decrease_axis"))
    node.refuse("a slice of an array with other than one element");
  else
    read_element(node, *array, starts);
  return true;
}

void create_array(Scope& scope, const std::string& name) {
  const auto array = joined_as(scope.program, name);
  if (!array) scope.b.fail(Code::kUnsupported, "an array that is joined in two ways");
  Array& made = scope.arrays[name] = array.value_or(Array{});
  made.lengths = empty(scope.b, DType::kInt64, {0});
  const Declared* const element = element_of(scope.program, name);
  List dims = element ? element->dims : List{};
  const auto rank = static_cast<int64_t>(dims.size()) + (made.stacks ? 1 : 0);
  if (made.axis < 0) made.axis += rank;
  if (!element || made.axis < 0 || made.axis >= rank) return;
  if (made.stacks) dims.insert(dims.begin() + made.axis, 0);
  dims[static_cast<size_t>(made.axis)] = 0;
  if (std::ranges::all_of(dims, [](int64_t size) { return size >= 0; })) made.joined = empty(scope.b, element->dtype, dims);
}

std::span<const OperatorRow> array_operators() { return kArrayRows; }

}  // namespace serin::formats::paddle
