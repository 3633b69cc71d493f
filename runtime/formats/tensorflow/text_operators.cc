// text_operators.cc: strings and lookup tables.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// A constant as a list attribute, and the ending of the attribute's name.
bool add_column(NodeImport& n, const graph::Constant& constant, std::string_view key, graph::Attributes& attributes) {
  if (constant.dtype == DType::kString) {
    attributes.emplace(fmt::format("{}_strings", key), constant.strings);
  } else if (constant.dtype == DType::kFloat32) {
    const auto numbers = constant.span<float>();
    attributes.emplace(fmt::format("{}_floats", key), std::vector<double>(numbers.begin(), numbers.end()));
  } else if (const auto integers = graph::integers_of(constant)) {
    attributes.emplace(fmt::format("{}_int64s", key), *integers);
  } else {
    n.unsupported(fmt::format("a table of {}", dtype_name(constant.dtype)));
    return false;
  }
  return true;
}

void import_find(NodeImport& n, Op op) {
  const NodeDef* const handle = n.value(0)->resource;
  if (!handle) return n.corrupt("operand 0 is no table");
  const auto table = n.importer().state().table(*handle);
  if (!table) return n.builder().fail(table.error().code, table.error().message);
  graph::Attributes attributes;
  if (!add_column(n, *table->keys, "keys", attributes) || !add_column(n, *table->values, "values", attributes)) return;
  const graph::ConstantPtr fallback = n.scope().graph().constant(n.in(2));
  if (!fallback || fallback->elements() != 1) return n.unsupported("a computed default of a table");
  if (fallback->dtype == DType::kString)
    attributes.emplace("default_string", fallback->strings.front());
  else if (fallback->dtype == DType::kFloat32)
    attributes.emplace("default_float", graph::number_of(*fallback).value_or(0));
  else
    attributes.emplace("default_int64", graph::integers_of(*fallback).value_or(List{-1}).front());
  attributes.emplace("to", std::string(dtype_name(table->values->dtype)));
  n.out(n.builder().add(op, {n.in(1)}, std::move(attributes)));
}

void import_table_size(NodeImport& n, Op) {
  const NodeDef* const handle = n.value(0)->resource;
  if (!handle) return n.corrupt("operand 0 is no table");
  const auto table = n.importer().state().table(*handle);
  if (!table) return n.builder().fail(table.error().code, table.error().message);
  const int64_t size = table->keys->elements();
  n.out(n.builder().constant(graph::make_constant(DType::kInt64, Shape{}, &size)));
}

void import_full_match(NodeImport& n, Op op) { n.out(n.builder().add(op, {n.in(0)}, {{"pattern", std::string(n.text("pattern"))}})); }

void import_join(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const std::string separator(n.text("separator"));
  ValueId joined = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i) {
    if (!separator.empty()) {
      std::byte* none = nullptr;
      auto constant = graph::make_mutable_constant(DType::kString, Shape{}, &none);
      constant->strings = {separator};
      joined = b.add(op, {joined, b.constant(constant)});
    }
    joined = b.add(op, {joined, n.in(i)});
  }
  n.out(joined);
}

constexpr OperatorRow kText[] = {
    {"LookupTableFind", 3, 3, import_find, Op::kLabelEncoder},
    {"LookupTableFindV2", 3, 3, import_find, Op::kLabelEncoder},
    {"LookupTableSizeV2", 1, 1, import_table_size},
    {"StaticRegexFullMatch", 1, 1, import_full_match, Op::kRegexFullMatch},
    {"StringJoin", 1, -1, import_join, Op::kStringConcat},
};

}  // namespace

std::span<const OperatorRow> text_operators() { return kText; }

}  // namespace serin::formats::tf
