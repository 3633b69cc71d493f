// text_operators.cc: strings and lookup tables.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/tensorflow/operators.h"
#include "runtime/formats/tensorflow/ragged.h"
#include "runtime/formats/tensorflow/words.h"

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

void import_change_case(NodeImport& n, Op op) {
  if (!n.text("encoding").empty()) return n.unsupported("encoding 'utf-8': only letters of ASCII change their case");
  n.out(n.builder().add(op, {n.in(0)}, {{"to", std::string(n.def().op == "StringLower" ? "LOWER" : "UPPER")}}));
}

void import_replace(NodeImport& n, Op op) {
  const bool all = n.integer("replace_global", 1) != 0;
  n.out(n.builder().add(op, {n.in(0)},
                        {{"pattern", std::string(n.text("pattern"))}, {"rewrite", std::string(n.text("rewrite"))}, {"all", int64_t{all}}}));
}

/// The parts of each text, one after the other: [texts, most parts] without the places behind the end of a row.
/// Results: [k, 2] places, [k] parts, the two sizes.
void import_split_strings(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const graph::ConstantPtr separator = n.scope().graph().constant(n.in(1));
  if (!separator || separator->strings.size() != 1) return n.unsupported("a computed separator");
  graph::Attributes attributes;
  if (!separator->strings[0].empty()) attributes.emplace("delimiter", separator->strings[0]);
  if (n.integer("maxsplit", -1) >= 0) attributes.emplace("maxsplit", n.integer("maxsplit", -1));
  const auto parts = b.add_with_results(op, 2, {n.in(0)}, graph::Attributes(attributes));
  const ValueId sizes = b.add(Op::kShape, {parts[0]});
  const ValueId most = b.squeeze(b.slice(sizes, 0, 1, 2), {0});
  const ValueId places = b.add(Op::kRange, {b.number(DType::kInt64, 0), most, b.number(DType::kInt64, 1)});
  const ValueId inside = b.add(Op::kLess, {places, b.unsqueeze(parts[1], {1})});
  const ValueId indices = b.transpose(b.add(Op::kNonZero, {inside}), {1, 0});
  const ValueId words = b.add(Op::kGatherND, {parts[0], indices});
  n.scope().cut_texts.push_back({n.in(0), std::move(attributes), indices, words, sizes});
  n.out(indices);
  n.out(words);
  n.out(sizes);
}

/// Rows of different lengths, one after the other, as rows of one length: shorter ones are filled up, longer ones cut.
void import_ragged(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const Attr* const kinds = n.attr("row_partition_types");
  const auto kind = [&](size_t i) { return kinds && i < kinds->list.size() ? kinds->list[i].text.value_or("") : std::string_view(); };
  const ValueId zero = b.number(DType::kInt64, 0), one = b.number(DType::kInt64, 1);
  const bool by_splits = kinds && kinds->list.size() == 1 && kind(0) == "ROW_SPLITS";
  const bool by_numbers = kinds && kinds->list.size() == 2 && kind(0) == "FIRST_DIM_SIZE" && kind(1) == "VALUE_ROWIDS" && n.inputs() > 4;
  const auto wanted = n.known(0);
  const bool cut = wanted && wanted->size() == 2 && (*wanted)[1] >= 0;
  if (cut && (*wanted)[0] < 0 && n.rank(2) == 0 && (by_splits || by_numbers)) {
    const CutTexts* const texts = by_splits ? cut_texts_of_splits(n, n.in(3)) : cut_texts_of_row_numbers(n, n.in(4), n.in(3));
    const ValueId rows_alone = texts ? rows_of_words(n, *texts, n.in(1), n.in(2), (*wanted)[1]) : kNone;
    if (rows_alone != kNone) return n.out(rows_alone);
  }
  ValueId lengths = kNone;
  if (by_splits) {
    lengths = lengths_between(b, n.in(3));
  } else if (by_numbers) {
    const ValueId rows = b.add(Op::kRange, {zero, b.reshape(b.cast(n.in(3), DType::kInt64), {}), one});
    const ValueId same = b.add(Op::kEqual, {b.unsqueeze(b.cast(n.in(4), DType::kInt64), {1}), rows});
    lengths = b.add(Op::kReduceSum, {b.cast(same, DType::kInt64)}, {{"axes", List{0}}, {"keepdims", int64_t{0}}});
  } else {
    return n.unsupported("rows of rows of different lengths");
  }
  if (n.rank(1) != 1 || n.rank(2) != 0) return n.unsupported("rows of tensors");
  if (!wanted) return n.unsupported("a computed shape");
  const ValueId width = cut ? b.constant(graph::make_constant(DType::kInt64, Shape{}, &(*wanted)[1])) : kNone;
  n.out(padded_rows(b, n.in(1), lengths, n.in(2), width));
}

void import_hash_bucket(NodeImport& n, Op op) { n.out(n.builder().add(op, {n.in(0)}, {{"buckets", n.integer("num_buckets", 0)}})); }

/// Of integers, in decimal; of others the digits would depend on the format.
void import_as_string(NodeImport& n, Op) {
  const DType from = n.dtype(0);
  if ((from != DType::kInt32 && from != DType::kInt64) || n.integer("width", -1) >= 0 || !n.text("fill").empty())
    return n.unsupported(fmt::format("{} as texts, or texts of a width", dtype_name(from)));
  n.out(n.builder().cast(n.in(0), DType::kString));
}

constexpr OperatorRow kText[] = {
    {"AsString", 1, 1, import_as_string},
    {"LookupTableFind", 3, 3, import_find, Op::kLabelEncoder},
    {"LookupTableFindV2", 3, 3, import_find, Op::kLabelEncoder},
    {"RaggedTensorToTensor", 4, -1, import_ragged},
    {"LookupTableSizeV2", 1, 1, import_table_size},
    {"StaticRegexFullMatch", 1, 1, import_full_match, Op::kRegexFullMatch},
    {"StaticRegexReplace", 1, 1, import_replace, Op::kRegexReplace},
    {"StringJoin", 1, -1, import_join, Op::kStringConcat},
    {"StringLower", 1, 1, import_change_case, Op::kChangeCase},
    {"StringSplitV2", 2, 2, import_split_strings, Op::kStringSplit, "indices values shape"},
    {"StringToHashBucketFast", 1, 1, import_hash_bucket, Op::kHashBucket},
    {"StringUpper", 1, 1, import_change_case, Op::kChangeCase},
};

}  // namespace

ValueId lengths_between(graph::Builder& b, ValueId splits) {
  const ValueId places = b.cast(splits, DType::kInt64);
  return b.add(Op::kSub, {b.slice(places, 0, 1, INT64_MAX), b.slice(places, 0, 0, -1)});
}

ValueId padded_rows(graph::Builder& b, ValueId values, ValueId lengths, ValueId standard, ValueId width) {
  const ValueId zero = b.number(DType::kInt64, 0), one = b.number(DType::kInt64, 1), axis = b.number(DType::kInt64, 0);
  if (width == kNone) width = b.add(Op::kReduceMax, {lengths}, {{"axes", List{0}}, {"keepdims", int64_t{0}}});
  const ValueId begins = b.add(Op::kCumSum, {lengths, axis}, {{"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
  const ValueId places = b.add(Op::kRange, {zero, width, one});
  const ValueId inside = b.add(Op::kLess, {places, b.unsqueeze(lengths, {1})});
  // The default stands behind the last value, where all places outside of a row look.
  const ValueId all = b.add(Op::kConcat, {values, b.unsqueeze(standard, {0})}, {{"axis", int64_t{0}}});
  const ValueId index = b.add(Op::kWhere, {inside, b.add(Op::kAdd, {b.unsqueeze(begins, {1}), places}), b.add(Op::kSize, {values})});
  return b.add(Op::kGather, {all, index}, {{"axis", int64_t{0}}});
}

std::span<const OperatorRow> text_operators() { return kText; }

}  // namespace serin::formats::tf
