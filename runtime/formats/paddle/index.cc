// index.cc: operators that choose elements by position or order: gathering, scattering, sorting.

#include <algorithm>
#include <limits>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

void import_gather(Node& node, Op op) {
  ValueId index = node.in(node.all("Index").empty() ? "Ids" : "Index");
  const int64_t axis = node.known_integer("axis|dim", "Axis", 0);
  if (node.b.rank(index) == size_t{2} && node.b.size(index, 1) == 1 && node.source().type == "gather") index = node.b.squeeze(index, {1});
  node.out("Out", node.binary(op, node.in("X"), index, {{"axis", axis}}));
}

/// The table with that row zero, where it is known; the same table if the row is zero already.
std::optional<graph::ConstantPtr> without_row(const graph::ConstantPtr& table, int64_t row) {
  if (!table || table->shape.rank() != 2 || row >= table->shape[0]) return std::nullopt;
  const size_t width = table->bytes() / static_cast<size_t>(table->shape[0]), begin = width * static_cast<size_t>(row);
  const auto data = table->data();
  const auto is_zero = [](std::byte each) { return each == std::byte{0}; };
  if (std::all_of(data.get() + begin, data.get() + begin + width, is_zero)) return table;
  return graph::make_constant(table->dtype, table->shape, [table, begin, width](std::span<std::byte> to) -> Status {
    std::copy_n(table->data().get(), to.size(), to.data());
    std::fill_n(to.data() + begin, width, std::byte{0});
    return {};
  });
}

void import_embedding(Node& node, Op op) {
  ValueId table = node.in("W"), ids = node.in("Ids");
  const int64_t padding = node.integer("padding_idx", -1);
  const auto rank = node.b.rank(ids);
  if (node.source().type == "lookup_table" && rank && *rank > 1 && node.b.size(ids, *rank - 1) == 1)
    ids = node.b.squeeze(ids, {static_cast<int64_t>(*rank) - 1});
  const graph::ConstantPtr known = node.b.graph().constant(table);
  const auto zeroed = padding >= 0 ? without_row(known, padding) : std::nullopt;  // zero, whatever the table holds there
  if (zeroed && *zeroed != known) table = node.b.constant(*zeroed);
  ValueId rows = node.binary(op, table, ids, {{"axis", int64_t{0}}});
  if (padding >= 0 && !zeroed) {
    const ValueId kept = node.unary(Op::kNot, node.with_number(Op::kEqual, ids, static_cast<double>(padding)));
    rows = node.binary(Op::kMul, rows, node.b.unsqueeze(node.b.cast(kept, node.b.dtype(rows)), {-1}));
  }
  node.out("Out", rows);
}

void import_gather_nd(Node& node, Op op) { node.out("Out", node.binary(op, node.in("X"), node.b.cast(node.in("Index"), DType::kInt64))); }

/// index_sample: along axis 1; take_along_axis: along any.
void import_gather_elements(Node& node, Op op) {
  const bool sample = node.source().type == "index_sample";
  const ValueId x = node.in(sample ? "X" : "Input"), index = node.in("Index");
  const size_t rank = node.rank(x);
  const int64_t axis = sample ? 1 : node.axis(node.integer("Axis|axis", 0), rank);
  for (size_t i = 0; i < rank && node.b.dims(index); ++i)
    if (static_cast<int64_t>(i) != axis && node.b.size(index, i) == 1 && node.b.size(x, i) != 1)
      return node.refuse("take_along_axis with an index that broadcasts");
  node.out(sample ? "Out" : "Result", node.binary(op, x, index, {{"axis", axis}}));
}

void import_put_along_axis(Node& node, Op op) {
  const std::string reduce = node.text("Reduce|reduce", "assign");
  std::string reduction = reduce == "assign" ? "none" : reduce == "multiply" ? "mul" : reduce;
  if (reduction == "amax") reduction = "max";
  if (reduction == "amin") reduction = "min";
  if (reduction == "mean" || !node.flag("Include_self|include_self", true)) return node.refuse("put_along_axis with " + reduce);
  const ValueId x = node.in("Input"), index = node.in("Index");
  const ValueId value = node.b.add(Op::kExpand, {node.b.cast(node.in("Value"), node.b.dtype(x)), node.shape_of(index)});
  node.out("Result", node.b.add(op, {x, index, value}, {{"axis", node.integer("Axis|axis", 0)}, {"reduction", reduction}}));
}

/// Rows of x are replaced; or, without overwrite, they become the sums of the updates.
void import_scatter(Node& node, Op op) {
  ValueId x = node.in("X"), ids = node.b.cast(node.in("Ids"), DType::kInt64);
  const ValueId updates = node.in("Updates");
  if (node.b.rank(ids) == size_t{0}) ids = node.b.reshape(ids, {1});
  if (node.b.rank(ids) == size_t{1}) ids = node.b.unsqueeze(ids, {1});
  if (node.flag("overwrite", true)) return node.out("Out", node.b.add(op, {x, ids, updates}));
  const ValueId zeros = node.binary(Op::kSub, updates, updates);
  x = node.b.add(op, {x, ids, zeros});
  node.out("Out", node.b.add(op, {x, ids, updates}, {{"reduction", std::string("add")}}));
}

void import_scatter_nd_add(Node& node, Op op) {
  const ValueId index = node.b.cast(node.in("Index"), DType::kInt64);
  node.out("Out", node.b.add(op, {node.in("X"), index, node.in("Updates")}, {{"reduction", std::string("add")}}));
}

void import_nonzero(Node& node, Op op) { node.out("Out", node.b.transpose(node.unary(op, node.in("Condition")), {1, 0})); }

void import_masked_select(Node& node, Op op) {
  const ValueId places = node.b.transpose(node.unary(op, node.in("Mask")), {1, 0});
  node.out("Y", node.binary(Op::kGatherND, node.in("X"), places));
}

void import_top_k(Node& node, Op op) {
  const ValueId x = node.in("X");
  const ValueId k = node.b.reshape(node.scalar("k", "K", DType::kInt64, 1), {1});
  const auto known = node.known_number("k", "K", 1);
  const ValueId count = known ? node.b.integers({static_cast<int64_t>(*known)}) : k;
  const auto results = node.b.add_with_results(
      op, 2, {x, count}, {{"axis", node.integer("axis", -1)}, {"largest", node.integer("largest", 1)}, {"sorted", int64_t{1}}});
  node.out("Out", results[0]);
  node.out("Indices", results[1]);
}

/// A stable sort: TopK of all elements, in which equal ones keep their order.
void import_argsort(Node& node, Op op) {
  const ValueId x = node.in("X");
  const int64_t axis = node.axis(node.integer("axis", -1), node.rank(x));
  const auto results = node.b.add_with_results(op, 2, {x, node.size_of(x, axis)},
                                               {{"axis", axis}, {"largest", int64_t{node.flag("descending")}}, {"sorted", int64_t{1}}});
  node.out("Out", results[0]);
  node.out("Indices", results[1]);
}

constexpr OperatorRow kIndexRows[] = {
    {"argsort", "argsort", "X", "Out Indices", import_argsort, Op::kTopK},
    {"gather", "gather", "X Index Axis", "Out", import_gather, Op::kGather},
    {"gather_nd", "gather_nd", "X Index", "Out", import_gather_nd, Op::kGatherND},
    {"index_sample", "index_sample", "X Index", "Out", import_gather_elements, Op::kGatherElements},
    {"index_select", "index_select", "X Index", "Out", import_gather, Op::kGather},
    {"lookup_table lookup_table_v2", "", "W Ids", "Out", import_embedding, Op::kGather},
    {"", "embedding", "Ids W", "Out", import_embedding, Op::kGather},
    {"masked_select", "masked_select", "X Mask", "Y", import_masked_select, Op::kNonZero},
    {"put_along_axis", "put_along_axis", "Input Index Value", "Result", import_put_along_axis, Op::kScatterElements},
    {"scatter", "scatter", "X Ids Updates", "Out", import_scatter, Op::kScatterND},
    {"scatter_nd_add", "scatter_nd_add", "X Index Updates", "Out", import_scatter_nd_add, Op::kScatterND},
    {"take_along_axis", "take_along_axis", "Input Index", "Result", import_gather_elements, Op::kGatherElements},
    {"top_k top_k_v2", "topk", "X K", "Out Indices", import_top_k, Op::kTopK},
    {"where_index", "nonzero", "Condition", "Out", import_nonzero, Op::kNonZero},
};

}  // namespace

std::span<const OperatorRow> index_operators() { return kIndexRows; }

}  // namespace serin::formats::paddle
