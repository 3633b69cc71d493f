// dynamic_rules.cc: type rules of sequences and optionals, and the table of their family with Scan and SequenceMap (control.cc). Elements of a
// sequence may differ in shape, so what is known of one is seldom known of all.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

namespace {

Status expect(const Context& c, size_t operand, ValueKind kind, std::string_view what) {
  const Type type = c.type(operand);
  if (type.dtype == DType::kUndefined || type.kind == kind) return {};
  return c.fail("operand {} is {}, it must be {}", operand, print(type), what);
}

Status expect_sequence(const Context& c) { return expect(c, 0, ValueKind::kSequence, "a sequence"); }

/// The shape that both have, or nothing.
std::optional<Dims> common(const std::optional<Dims>& a, const std::optional<Dims>& b) { return a && b && *a == *b ? a : std::nullopt; }

}  // namespace

Status infer_sequence_empty(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", DType::kFloat32));
  return c.set(0, Type{ValueKind::kSequence, dtype, std::nullopt});
}

Status infer_sequence_construct(Context& c) {
  Type type = c.type(0);
  for (size_t i = 0; i < c.operands(); ++i) {
    SERIN_CHECK(expect(c, i, ValueKind::kTensor, "a tensor"));
    SERIN_CHECK(c.same_dtype(0, i));
    type.shape = common(type.shape, c.type(i).shape);
  }
  type.kind = ValueKind::kSequence;
  return c.set(0, std::move(type));
}

Status infer_sequence_insert(Context& c) {
  SERIN_CHECK(expect_sequence(c));
  SERIN_CHECK(expect(c, 1, ValueKind::kTensor, "a tensor"));
  SERIN_CHECK(c.same_dtype(0, 1));
  return c.set(0, Type{ValueKind::kSequence, c.dtype(0) == DType::kUndefined ? c.dtype(1) : c.dtype(0), std::nullopt});
}

Status infer_sequence_erase(Context& c) {
  SERIN_CHECK(expect_sequence(c));
  return c.set(0, Type{ValueKind::kSequence, c.dtype(0), c.type(0).shape});
}

Status infer_sequence_at(Context& c) {
  SERIN_CHECK(expect_sequence(c));
  SERIN_CHECK(c.index_dtype(1));
  return c.set(0, c.dtype(0), c.type(0).shape);
}

Status infer_sequence_length(Context& c) {
  SERIN_CHECK(expect_sequence(c));
  return c.set(0, DType::kInt64, Dims{});
}

Status infer_split_to_sequence(Context& c) {
  SERIN_CHECK(expect(c, 0, ValueKind::kTensor, "a tensor"));
  return c.set(0, Type{ValueKind::kSequence, c.dtype(0), std::nullopt});
}

Status infer_concat_from_sequence(Context& c) {
  SERIN_CHECK(expect_sequence(c));
  const Dims* element = c.dims(0);
  const size_t rank = element ? element->size() + (c.node().integer("new_axis", 0) != 0 ? 1 : 0) : 0;
  return c.set(0, c.dtype(0), element && Shape::fits(rank) ? std::optional(c.unknown_dims(rank)) : std::nullopt);
}

Status infer_optional(Context& c) {
  Type type = c.type(0);
  if (!c.has(0)) {
    SERIN_TRY(type.dtype, c.dtype_attribute("dtype", DType::kFloat32));
    if (c.node().text("kind", "tensor") == "sequence") type.kind = ValueKind::kSequence;
  }
  type.kind = type.kind == ValueKind::kSequence ? ValueKind::kOptionalSequence : ValueKind::kOptional;
  return c.set(0, std::move(type));
}

Status infer_optional_has_element(Context& c) { return c.set(0, DType::kBool, Dims{}); }

/// A tensor or a sequence in place of an optional is what it holds.
Status infer_optional_get_element(Context& c) {
  Type type = c.type(0);
  if (type.kind == ValueKind::kOptional) type.kind = ValueKind::kTensor;
  if (type.kind == ValueKind::kOptionalSequence) type.kind = ValueKind::kSequence;
  return c.set(0, std::move(type));
}

}  // namespace serin::graph
