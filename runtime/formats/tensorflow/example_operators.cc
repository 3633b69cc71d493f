// example_operators.cc: ParseExample and its variants: serialized tf.Example messages -> features.
//
//   ParseExampleV2       serialized, names, keys of sparse, dense and ragged features as lists, then defaults of the dense ones
//   ParseExample         serialized, names, one operand for each key of sparse and dense features, then the defaults
//   ParseSingleExample   one message, the defaults; the keys are attributes
//
// Names are for messages of errors only.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/operators.h"
#include "runtime/formats/tensorflow/ragged.h"
#include "runtime/formats/tensorflow/tensor.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using Texts = std::vector<std::string>;

struct Features {
  Texts sparse, dense, ragged;  ///< keys
  size_t first_default = 0;     ///< operand
};

/// The texts that are known in an operand.
bool read_keys(NodeImport& n, size_t operand, Texts& keys) {
  const graph::ConstantPtr constant = n.scope().graph().constant(n.in(operand));
  if (!constant || (constant->dtype != DType::kString && constant->elements() != 0)) {
    n.unsupported("the names of features are computed");
    return false;
  }
  keys.insert(keys.end(), constant->strings.begin(), constant->strings.end());
  return true;
}

Texts texts_of(NodeImport& n, std::string_view key) {
  Texts texts;
  if (const Attr* const attr = n.attr(key))
    for (const Attr& each : attr->list) texts.emplace_back(each.text.value_or(""));
  return texts;
}

/// As many dtypes as there are keys; an error otherwise.
std::vector<DType> types_of(NodeImport& n, std::string_view key, size_t count) {
  std::vector<DType> types;
  for (const int64_t number : n.integers(key)) types.push_back(dtype_of(number).value_or(DType::kUndefined));
  if (types.size() == count) return types;
  n.corrupt(fmt::format("has {} names of features, and {} types ({})", count, types.size(), key));
  return std::vector<DType>(count, DType::kUndefined);
}

/// A dense feature whose first size is unknown is a list that is filled up to the longest one with the default.
bool is_filled_up(const PartialShape& shape) { return shape && !shape->empty() && shape->front() < 0; }

class ExampleImport {
 public:
  ExampleImport(NodeImport& n, Features features) : n_(n), features_(std::move(features)), operands_{n.in(0)} {}

  void run() {
    const int64_t counted = n_.integer("num_sparse", static_cast<int64_t>(features_.sparse.size()));
    if (counted != static_cast<int64_t>(features_.sparse.size()))
      return n_.corrupt(fmt::format("has {} sparse features, num_sparse is {}", features_.sparse.size(), counted));
    const auto sparse_types = types_of(n_, "sparse_types", features_.sparse.size());
    dense_types_ = types_of(n_, "Tdense", features_.dense.size());
    const auto ragged_types = types_of(n_, "ragged_value_types", features_.ragged.size());
    const auto split_types = types_of(n_, "ragged_split_types", features_.ragged.size());
    read_shapes();
    if (n_.builder().error()) return;
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (!is_filled_up(shapes_[i])) add_dense(i);
    for (size_t i = 0; i < sparse_types.size(); ++i) add_key(features_.sparse[i], sparse_types[i]);
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (is_filled_up(shapes_[i])) add_key(features_.dense[i], dense_types_[i]);
    for (size_t i = 0; i < ragged_types.size(); ++i) add_key(features_.ragged[i], ragged_types[i]);
    const size_t sparse = features_.sparse.size(), dense = ranks_.size(), ragged = keys_.size() - sparse - dense;
    const auto results = n_.builder().add_with_results(Op::kParseExample, dense + 3 * sparse + 2 * ragged, std::move(operands_),
                                                       {{"keys", keys_},
                                                        {"types", types_},
                                                        {"ranks", ranks_},
                                                        {"dims", dims_},
                                                        {"sparse", static_cast<int64_t>(sparse)},
                                                        {"ragged", static_cast<int64_t>(ragged)}});
    if (n_.builder().error()) return;
    for (size_t part = 0; part < 3; ++part)
      for (size_t i = 0; i < sparse; ++i) n_.out(results[dense + 3 * i + part]);
    size_t next_dense = 0, next_ragged = dense + 3 * sparse;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (!is_filled_up(shapes_[i])) {
        n_.out(results[next_dense++]);
        continue;
      }
      n_.out(filled_up(i, results[next_ragged], results[next_ragged + 1]));
      next_ragged += 2;
    }
    for (size_t i = 0; i < ragged_types.size(); ++i) n_.out(results[next_ragged + 2 * i]);
    for (size_t i = 0; i < ragged_types.size(); ++i) n_.out(n_.builder().cast(results[next_ragged + 2 * i + 1], split_types[i]));
  }

 private:
  void read_shapes() {
    const Attr* const attr = n_.attr("dense_shapes");
    if (!attr || attr->list.size() != features_.dense.size()) return n_.corrupt("has not as many shapes as dense features");
    if (n_.inputs() != features_.first_default + features_.dense.size()) return n_.corrupt("has not as many defaults as dense features");
    for (const Attr& each : attr->list) {
      const PartialShape shape = each.shape.value_or(std::nullopt);
      const bool known = shape && std::ranges::all_of(shape->begin() + (is_filled_up(shape) ? 1 : 0), shape->end(),
                                                      [](int64_t size) { return size >= 0; });
      if (!known) return n_.unsupported("a dense feature of unknown shape");
      if (is_filled_up(shape) && shape->size() > 1) return n_.unsupported("a list of tensors of different lengths");
      shapes_.push_back(shape);
    }
  }

  void add_key(const std::string& key, DType type) {
    keys_.push_back(key);
    types_.emplace_back(dtype_name(type));
  }

  void add_dense(size_t i) {
    add_key(features_.dense[i], dense_types_[i]);
    ranks_.push_back(static_cast<int64_t>(shapes_[i]->size()));
    dims_.insert(dims_.end(), shapes_[i]->begin(), shapes_[i]->end());
    operands_.push_back(n_.in(features_.first_default + i));
  }

  ValueId filled_up(size_t i, ValueId values, ValueId splits) {
    graph::Builder& b = n_.builder();
    const ValueId given = n_.in(features_.first_default + i);
    if (b.rank(given) && n_.scope().graph().constant(given) && n_.scope().graph().constant(given)->elements() == 1)
      return padded_rows(b, values, lengths_between(b, splits), b.reshape(given, {}), kNone);
    if (dense_types_[i] == DType::kString) {
      std::byte* none = nullptr;
      auto empty = graph::make_mutable_constant(DType::kString, Shape{}, &none);
      empty->strings = {""};
      return padded_rows(b, values, lengths_between(b, splits), b.constant(std::move(empty)), kNone);
    }
    return padded_rows(b, values, lengths_between(b, splits), b.number(dense_types_[i], 0), kNone);
  }

  NodeImport& n_;
  const Features features_;
  std::vector<DType> dense_types_;
  std::vector<PartialShape> shapes_;
  Texts keys_, types_;
  std::vector<int64_t> ranks_, dims_;
  std::vector<ValueId> operands_;
};

void import_parse_example_v2(NodeImport& n, Op) {
  Features features{.sparse = {}, .dense = {}, .ragged = {}, .first_default = 5};
  if (read_keys(n, 2, features.sparse) && read_keys(n, 3, features.dense) && read_keys(n, 4, features.ragged))
    ExampleImport(n, std::move(features)).run();
}

void import_parse_example(NodeImport& n, Op) {
  const int64_t sparse = n.integer("Nsparse", 0), dense = n.integer("Ndense", 0), most = static_cast<int64_t>(n.inputs());
  if (sparse < 0 || dense < 0 || sparse > most || dense > most || 2 + sparse + 2 * dense != most)
    return n.corrupt("has not as many operands as features");
  Features features{.sparse = {}, .dense = {}, .ragged = {}, .first_default = static_cast<size_t>(2 + sparse + dense)};
  for (size_t i = 2; i < features.first_default; ++i)
    if (!read_keys(n, i, i < static_cast<size_t>(2 + sparse) ? features.sparse : features.dense)) return;
  ExampleImport(n, std::move(features)).run();
}

void import_parse_single_example(NodeImport& n, Op) {
  ExampleImport(n, {.sparse = texts_of(n, "sparse_keys"), .dense = texts_of(n, "dense_keys"), .ragged = {}, .first_default = 1}).run();
}

constexpr OperatorRow kExamples[] = {
    {"ParseExample", 2, -1, import_parse_example, Op::kParseExample,
     "sparse_indices*Nsparse sparse_values*Nsparse sparse_shapes*Nsparse dense_values*Ndense"},
    {"ParseExampleV2", 5, -1, import_parse_example_v2, Op::kParseExample,
     "sparse_indices*num_sparse sparse_values*num_sparse sparse_shapes*num_sparse dense_values*Tdense ragged_values*ragged_value_types "
     "ragged_row_splits*ragged_split_types"},
    {"ParseSingleExample", 1, -1, import_parse_single_example, Op::kParseExample,
     "sparse_indices*num_sparse sparse_values*num_sparse sparse_shapes*num_sparse dense_values*Tdense"},
};

}  // namespace

std::span<const OperatorRow> example_operators() { return kExamples; }

}  // namespace serin::formats::tf
