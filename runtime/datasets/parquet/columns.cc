// columns.cc: a struct is its fields, at any depth, because no input of a model takes several kinds of values at once. A list is a column.

#include "runtime/datasets/parquet/columns.h"

#include <arrow/extension/fixed_shape_tensor.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/tensor.h"

namespace serin::datasets::columnar {
namespace {

bool is_number(arrow::Type::type id) {
  return id == arrow::Type::BOOL || arrow::is_integer(id) || id == arrow::Type::HALF_FLOAT || id == arrow::Type::FLOAT ||
         id == arrow::Type::DOUBLE;
}

bool is_text(arrow::Type::type id) {
  return arrow::is_base_binary_like(id) || id == arrow::Type::FIXED_SIZE_BINARY || id == arrow::Type::STRING_VIEW ||
         id == arrow::Type::BINARY_VIEW;
}

bool is_tensor_list(arrow::Type::type id) {
  return id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST || id == arrow::Type::FIXED_SIZE_LIST;
}

/// Elements of a permuted tensor are in another order than its axes say.
bool is_permuted(const arrow::ExtensionType& type) {
  if (type.extension_name() != "arrow.fixed_shape_tensor") return false;
  const auto& order = static_cast<const arrow::extension::FixedShapeTensorType&>(type).permutation();
  return !std::ranges::is_sorted(order);
}

bool is_readable(const arrow::DataType& type, size_t depth) {
  const arrow::Type::type id = type.id();
  if (id == arrow::Type::EXTENSION) {
    const auto& extension = static_cast<const arrow::ExtensionType&>(type);
    return !is_permuted(extension) && is_readable(*extension.storage_type(), depth);
  }
  if (is_tensor_list(id)) return Shape::fits(depth + 1) && is_readable(*type.field(0)->type(), depth + 1);
  if (is_number(id)) return true;
  if (depth > 0) return false;  // a tensor is of numbers
  if (id == arrow::Type::DICTIONARY) {
    const arrow::Type::type values = static_cast<const arrow::DictionaryType&>(type).value_type()->id();
    return is_number(values) || is_text(values);
  }
  return is_text(id) || id == arrow::Type::NA;
}

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

void add_columns(const parquet::arrow::SchemaField& field, std::vector<std::string> path, std::vector<Column>& columns) {
  path.push_back(field.field->name());
  const arrow::DataType& type = *field.field->type();
  if (type.id() == arrow::Type::STRUCT && !field.is_leaf()) {
    for (const auto& child : field.children) add_columns(child, path, columns);
    return;
  }
  Column column{fmt::format("{}", fmt::join(path, ".")), std::move(path), {}, {}};
  add_leaves(field, column.leaves);
  if (!is_readable(type, 0))
    column.refusal = fmt::format("is of type {}; what can be read: numbers, bool, texts, bytes, and lists of numbers", type.ToString());
  columns.push_back(std::move(column));
}

}  // namespace

Result<std::vector<Column>> columns_of(const parquet::arrow::SchemaManifest& manifest) {
  std::vector<Column> columns;
  for (const auto& field : manifest.schema_fields) add_columns(field, {}, columns);
  std::set<std::string, std::less<>> names;
  for (const Column& column : columns)
    if (!names.insert(column.name).second) return Error{Code::kCorrupt, fmt::format("two columns have the name '{}'", column.name)};
  return columns;
}

}  // namespace serin::datasets::columnar
