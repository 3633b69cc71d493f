// containers.cc: runs the operators on sequences and optionals, and ImageDecoder (pictures.h). Sequences are vectors of shared tensors, so inserting one copies no
// elements. Negative positions count from the end.

#include "runtime/engine/interpret/containers.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/interpret/pictures.h"
#include "runtime/engine/interpret/tensor_parts.h"

namespace serin::engine {

namespace {

using graph::ConstantPtr;
using graph::ValueKind;

using Operands = std::vector<Value>;

bool is_absent(const Operands& operands, size_t i) { return i >= operands.size() || (operands[i].is_tensor() && !operands[i].tensor); }

Status expect(const Operands& operands, size_t i, ValueKind kind) {
  if (!is_absent(operands, i) && operands[i].kind == kind) return {};
  const std::string_view wanted = kind == ValueKind::kSequence ? "a sequence" : "a tensor";
  return invalid(fmt::format("operand {} is {}, it must be {}", i, i < operands.size() ? describe(operands[i]) : "absent", wanted));
}

Result<int64_t> integer(const Value& value) {
  const auto integers = value.tensor ? graph::integers_of(*value.tensor) : std::nullopt;
  if (!integers || integers->size() != 1) return invalid(fmt::format("{} is not a position", describe(value)));
  return integers->front();
}

/// Within [0, size).
Result<size_t> position(const Value& value, size_t size) {
  SERIN_TRY(const int64_t at, integer(value));
  const auto limit = static_cast<int64_t>(size);
  if (at < -limit || at >= limit) return invalid(fmt::format("position {} is outside a sequence of {}", at, size));
  return static_cast<size_t>(at < 0 ? at + limit : at);
}

Result<Value> construct(Operands& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    SERIN_CHECK(expect(operands, i, ValueKind::kTensor));
    if (operands[i].dtype != operands[0].dtype)
      return invalid(fmt::format("puts {} and {} into one sequence", describe(operands[0]), describe(operands[i])));
  }
  const DType dtype = operands[0].dtype;
  return Value::sequence(dtype, std::move(operands));
}

Result<Value> insert(Operands& operands, size_t max_bytes) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kSequence));
  SERIN_CHECK(expect(operands, 1, ValueKind::kTensor));
  Value& sequence = operands[0];
  auto& elements = sequence.elements;
  if (sequence.dtype != DType::kUndefined && sequence.dtype != operands[1].dtype)
    return invalid(fmt::format("puts {} into a {}", describe(operands[1]), describe(sequence)));
  sequence.dtype = operands[1].dtype;
  size_t at = elements.size();
  if (!is_absent(operands, 2)) {
    SERIN_TRY(const int64_t given, integer(operands[2]));
    const auto size = static_cast<int64_t>(elements.size());
    if (given < -size || given > size) return invalid(fmt::format("position {} is outside a sequence of {}", given, size));
    at = static_cast<size_t>(given < 0 ? given + size : given);
  }
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), std::move(operands[1]));
  if (bytes_of(sequence) > max_bytes) return Error{Code::kTooLarge, fmt::format("the sequence exceeds the limit of {} bytes", max_bytes)};
  return std::move(sequence);
}

Result<Value> erase(Operands& operands) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kSequence));
  auto& elements = operands[0].elements;
  if (elements.empty()) return invalid("takes an element from an empty sequence");
  size_t at = elements.size() - 1;
  if (!is_absent(operands, 1)) {
    SERIN_TRY(at, position(operands[1], elements.size()));
  }
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return std::move(operands[0]);
}

Result<Value> at(Operands& operands) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kSequence));
  SERIN_TRY(const size_t index, position(operands[1], operands[0].elements.size()));
  return std::move(operands[0].elements[index]);
}

Result<Value> length(const Operands& operands) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kSequence));
  const auto size = static_cast<int64_t>(operands[0].elements.size());
  return Value::of(graph::make_constant(DType::kInt64, Shape{}, &size));
}

/// Lengths of the parts: given one by one, one for all (the last may be shorter), or 1 each.
Result<std::vector<int64_t>> lengths_of_parts(const Operands& operands, int64_t size) {
  std::vector<int64_t> lengths;
  int64_t each = 1;
  if (!is_absent(operands, 1)) {
    const auto given = graph::integers_of(*operands[1].tensor);
    if (!given) return invalid(fmt::format("{} gives no lengths", describe(operands[1])));
    if (operands[1].tensor->shape.rank() != 0) {
      int64_t left = size;
      for (const int64_t one : *given) {
        if (one < 0 || one > left) return invalid(fmt::format("its parts do not add up to {}", size));
        left -= one;
      }
      if (left != 0) return invalid(fmt::format("its parts do not add up to {}", size));
      return *given;
    }
    each = given->front();
    if (each < 1) return invalid(fmt::format("splits into parts of {}", each));
  }
  for (int64_t begin = 0; begin < size; begin += each) {
    lengths.push_back(std::min(each, size - begin));
    if (each > size - begin) break;
  }
  return lengths;
}

Result<Value> split(const graph::Node& node, const Operands& operands) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kTensor));
  const ConstantPtr& whole = operands[0].tensor;
  const auto rank = static_cast<int64_t>(whole->shape.rank());
  const int64_t given = node.integer("axis", 0);
  if (given < -rank || given >= rank) return invalid(fmt::format("axis {} is out of range for rank {}", given, rank));
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  SERIN_TRY(const std::vector<int64_t> lengths, lengths_of_parts(operands, whole->shape[axis]));
  const bool drop_axis = is_absent(operands, 1) && node.integer("keepdims", 1) == 0;
  std::vector<Value> parts;
  int64_t begin = 0;
  for (const int64_t count : lengths) {
    parts.push_back(Value::of(drop_axis ? slice(whole, axis, begin) : part(whole, axis, begin, count)));
    begin += count;
  }
  return Value::sequence(whole->dtype, std::move(parts));
}

Result<Value> concat(const graph::Node& node, const Operands& operands, size_t max_bytes) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kSequence));
  std::vector<ConstantPtr> parts;
  for (const Value& element : operands[0].elements) {
    if (!element.tensor) return invalid("an element is not a tensor");
    parts.push_back(element.tensor);
  }
  const int64_t axis = node.integer("axis", 0);
  SERIN_TRY(ConstantPtr whole, node.integer("new_axis", 0) != 0 ? stacked(parts, axis, max_bytes) : concatenated(parts, axis, max_bytes));
  return Value::of(std::move(whole));
}

Result<Value> wrap(const graph::Node& node, Operands& operands) {
  if (!is_absent(operands, 0)) return Value::optional(std::move(operands[0]));
  return Value::optional(graph::find_dtype(node.text("dtype", "f32")).value_or(DType::kUndefined));
}

Value has_element(const Operands& operands) {
  const bool has = !is_absent(operands, 0) && (operands[0].kind != ValueKind::kOptional || !operands[0].elements.empty());
  return Value::of(graph::make_constant(DType::kBool, Shape{}, &has));
}

Result<Value> get_element(Operands& operands) {
  if (is_absent(operands, 0)) return invalid("takes the element of an absent optional");
  if (operands[0].kind != ValueKind::kOptional) return std::move(operands[0]);
  if (operands[0].elements.empty()) return invalid("takes the element of an empty optional");
  return std::move(operands[0].elements.front());
}

Result<Value> decode(const graph::Node& node, const Operands& operands, size_t max_bytes) {
  SERIN_CHECK(expect(operands, 0, ValueKind::kTensor));
  if (operands[0].dtype != DType::kUInt8) return invalid(fmt::format("{} are no bytes of a picture", describe(operands[0])));
  SERIN_TRY(ConstantPtr pixels, decode_picture(node, *operands[0].tensor, max_bytes));
  return Value::of(std::move(pixels));
}

Result<Value> compute(const graph::Node& node, Operands& operands, size_t max_bytes) {
  using enum graph::Op;
  switch (node.op) {
    case kIdentity: return std::move(operands[0]);
    case kSequenceEmpty: return Value::sequence(graph::find_dtype(node.text("dtype", "f32")).value_or(DType::kFloat32), {});
    case kSequenceConstruct: return construct(operands);
    case kSequenceInsert: return insert(operands, max_bytes);
    case kSequenceErase: return erase(operands);
    case kSequenceAt: return at(operands);
    case kSequenceLength: return length(operands);
    case kSplitToSequence: return split(node, operands);
    case kConcatFromSequence: return concat(node, operands, max_bytes);
    case kImageDecoder: return decode(node, operands, max_bytes);
    case kOptional: return wrap(node, operands);
    case kOptionalHasElement: return has_element(operands);
    case kOptionalGetElement: return get_element(operands);
    default: return Error{Code::kUnsupported, "nothing runs it"};
  }
}

}  // namespace

Result<std::vector<Value>> run_container(const graph::Node& node, std::vector<Value> operands, size_t max_bytes) {
  SERIN_TRY(Value result, compute(node, operands, max_bytes));
  std::vector<Value> results;
  results.push_back(std::move(result));
  return results;
}

}  // namespace serin::engine
