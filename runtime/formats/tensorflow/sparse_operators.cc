// sparse_operators.cc: sparse tensors, which are indices [values, rank], values and a shape, as feature columns use them; and sums of rows
// that belong together.

#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

void import_sparse_reshape(NodeImport& n, Op op) {
  for (const ValueId id : n.builder().add_with_results(op, 2, {n.in(0), n.in(1), n.in(2)})) n.out(id);
}

void import_fill_empty_rows(NodeImport& n, Op op) {
  for (const ValueId id : n.builder().add_with_results(op, 4, {n.in(0), n.in(1), n.in(2), n.in(3)})) n.out(id);
}

/// Operands: indices, the shape of the result, values, default.
void import_sparse_to_dense(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  ValueId indices = b.cast(n.in(0), DType::kInt64);
  const auto rank = n.rank(0), values = n.rank(2);
  if (!rank || !values) return n.unsupported("indices of unknown rank");
  if (*rank < 2) indices = b.unsqueeze(indices, *rank == 0 ? List{0, 1} : List{1});
  const ValueId dense = b.add(Op::kExpand, {n.in(3), n.i64(1)});
  const ValueId updates = *values == 0 ? b.add(Op::kExpand, {n.in(2), b.slice(b.add(Op::kShape, {indices}), 0, 0, 1)}) : n.in(2);
  n.out(b.add(op, {dense, indices, updates}, {{"reduction", std::string("none")}}));
}

std::string reduction_of(const NodeImport& n) {
  const std::string_view name = n.def().op;
  return name.find("Mean") != std::string_view::npos ? "mean" : name.find("SqrtN") != std::string_view::npos ? "sqrt_n" : "sum";
}

/// The number of segments, where an operand gives it.
ValueId count_in(NodeImport& n, size_t operand) {
  return n.inputs() > operand ? n.builder().reshape(n.builder().cast(n.in(operand), DType::kInt64), {}) : kNone;
}

/// Operands: rows, the segment of each, perhaps the number of segments.
void import_segments(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  if (n.rank(1) != 1) return n.unsupported("segments that are no list");
  n.out(b.add(op, {n.in(0), b.cast(n.in(1), DType::kInt64), count_in(n, 2)}, {{"reduction", reduction_of(n)}}));
}

/// The same of chosen rows. Operands: a table, the rows, the segment of each.
void import_sparse_segments(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const ValueId rows = b.add(Op::kGather, {n.in(0), n.in(1)}, {{"axis", int64_t{0}}});
  n.out(b.add(op, {rows, b.cast(n.in(2), DType::kInt64), count_in(n, 3)}, {{"reduction", reduction_of(n)}}));
}

/// Operands: N indices, values of as many features, N shapes, dense features.
void import_sparse_cross(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const int64_t given = n.integer("N", 0);
  if (!n.flag("hashed_output")) return n.unsupported("crossed texts that are not hashed");
  if (given < 0 || given > static_cast<int64_t>(n.inputs()) / 3) return n.corrupt("has fewer operands than features");
  const auto sparse = static_cast<size_t>(given);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < sparse; ++i)
    for (size_t part = 0; part < 3; ++part) operands.push_back(n.in(part * sparse + i));
  for (size_t i = 3 * sparse; i < n.inputs(); ++i) operands.push_back(n.in(i));
  const auto results = b.add_with_results(op, 3, std::move(operands),
                                          {{"sparse", given}, {"buckets", n.integer("num_buckets", 0)}, {"key", n.integer("hash_key", 0)}});
  for (const ValueId id : results) n.out(id);
}

constexpr OperatorRow kSparse[] = {
    {"SegmentMean", 2, 2, import_segments, Op::kSegmentReduce},
    {"SegmentMeanV2", 3, 3, import_segments, Op::kSegmentReduce},
    {"SegmentSum", 2, 2, import_segments, Op::kSegmentReduce},
    {"SegmentSumV2", 3, 3, import_segments, Op::kSegmentReduce},
    {"SparseCross", 1, -1, import_sparse_cross, Op::kSparseCross, "output_indices output_values output_shape"},
    {"SparseFillEmptyRows", 4, 4, import_fill_empty_rows, Op::kFillEmptyRows,
     "output_indices output_values empty_row_indicator reverse_index_map"},
    {"SparseReshape", 3, 3, import_sparse_reshape, Op::kSparseReshape, "output_indices output_shape"},
    {"SparseSegmentMean", 3, 3, import_sparse_segments, Op::kSegmentReduce},
    {"SparseSegmentMeanWithNumSegments", 4, 4, import_sparse_segments, Op::kSegmentReduce},
    {"SparseSegmentSqrtN", 3, 3, import_sparse_segments, Op::kSegmentReduce},
    {"SparseSegmentSqrtNWithNumSegments", 4, 4, import_sparse_segments, Op::kSegmentReduce},
    {"SparseSegmentSum", 3, 3, import_sparse_segments, Op::kSegmentReduce},
    {"SparseSegmentSumWithNumSegments", 4, 4, import_sparse_segments, Op::kSegmentReduce},
    {"SparseToDense", 4, 4, import_sparse_to_dense, Op::kScatterND},
    {"UnsortedSegmentSum", 3, 3, import_segments, Op::kSegmentReduce},
};

}  // namespace

std::span<const OperatorRow> sparse_operators() { return kSparse; }

}  // namespace serin::formats::tf
