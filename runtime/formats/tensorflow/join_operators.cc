// join_operators.cc: tensors joined along an axis, and taken apart again.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// Operands are brought to one order of axes where one has its channels first.
void import_concat(NodeImport& n, Op op) {
  const bool axis_last = n.def().op == "ConcatV2";
  const size_t axis_at = axis_last ? n.inputs() - 1 : 0, begin = axis_last ? 0 : 1, end = axis_last ? n.inputs() - 1 : n.inputs();
  const List axis = n.needed(axis_at, "axes");
  const auto rank = n.rank(begin);
  if (!rank || axis.size() != 1) return n.unsupported("an unknown axis");
  const int64_t at = n.axis(axis[0], *rank);
  bool first = false, same_rank = true;
  for (size_t i = begin; i < end; ++i) {
    first |= n.prefers_first(i);
    same_rank &= n.rank(i) == rank;
  }
  std::vector<ValueId> operands;
  first &= same_rank;
  for (size_t i = begin; i < end; ++i) operands.push_back(first ? n.first(i) : n.in(i));
  if (operands.size() == 1) return n.out_value(n.value(begin));
  const ValueId joined = n.builder().add(op, std::move(operands), {{"axis", first ? place_in_first(at, *rank) : at}});
  first ? n.out_first(joined) : n.out(joined);
}

void import_pack(NodeImport& n, Op) {
  const auto rank = n.rank(0);
  if (!rank) return n.unsupported("a tensor of unknown rank");
  const int64_t at = n.axis(n.integer("axis", 0), *rank + 1);
  std::vector<ValueId> operands;
  operands.reserve(n.inputs());
  for (size_t i = 0; i < n.inputs(); ++i) operands.push_back(n.builder().unsqueeze(n.in(i), {at}));
  n.out(operands.size() == 1 ? operands[0] : n.builder().add(Op::kConcat, std::move(operands), {{"axis", at}}));
}

/// A part of a constant along its first axis, of that shape.
graph::ConstantPtr part_of(const graph::ConstantPtr& whole, int64_t first_row, const Shape& shape) {
  const size_t row = whole->shape[0] == 0 ? 0 : whole->bytes() / static_cast<size_t>(whole->shape[0]);
  return graph::make_constant(whole->dtype, shape,
                              [whole, begin = static_cast<size_t>(first_row) * row](std::span<std::byte> bytes) -> Status {
                                const auto data = whole->data();
                                std::copy_n(data.get() + begin, bytes.size(), bytes.data());
                                return {};
                              });
}

/// The constant operand, if parts of it along its first axis are to be constants, too: layers keep several vectors in one weight.
graph::ConstantPtr sliceable(NodeImport& n, size_t operand, int64_t axis) {
  const graph::ConstantPtr whole = n.prefers_first(operand) ? nullptr : n.scope().graph().constant(n.in(operand));
  return whole && axis == 0 && whole->dtype != DType::kString && whole->shape.rank() > 0 ? whole : nullptr;
}

void import_unpack(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const auto rank = n.rank(0);
  const int64_t count = n.integer("num", 0);
  if (!rank || *rank == 0 || count < 1 || count > 65'536) return n.unsupported("an unknown number of parts");
  const int64_t at = n.axis(n.integer("axis", 0), *rank);
  if (const graph::ConstantPtr whole = sliceable(n, 0, at); whole && whole->shape[0] == count) {
    const Shape row(whole->shape.dims().subspan(1));
    for (int64_t part = 0; part < count; ++part) n.out(b.constant(part_of(whole, part, row)));
    return;
  }
  const auto parts =
      b.add_with_results(Op::kSplit, static_cast<size_t>(count), {n.in(0)}, {{"axis", at}, {"split", List(static_cast<size_t>(count), 1)}});
  for (const ValueId part : parts) n.out(b.squeeze(part, {at}));
}

void split_at(NodeImport& n, size_t operand, int64_t axis, List sizes) {
  const auto rank = n.rank(operand);
  const int64_t at = n.axis(axis, *rank);
  const graph::ConstantPtr whole = sliceable(n, operand, at);
  if (whole && std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == whole->shape[0] && std::ranges::min(sizes) >= 0) {
    int64_t begin = 0;
    for (const int64_t size : sizes) {
      Shape shape = whole->shape;
      shape[0] = size;
      n.out(n.builder().constant(part_of(whole, begin, shape)));
      begin += size;
    }
    return;
  }
  const bool first = n.prefers_first(operand);
  graph::Attributes attributes{{"axis", first ? place_in_first(at, *rank) : at}, {"split", sizes}};
  const ValueId x = first ? n.first(operand) : n.in(operand);
  for (const ValueId part : n.builder().add_with_results(Op::kSplit, sizes.size(), {x}, std::move(attributes)))
    first ? n.out_first(part) : n.out(part);
}

void import_split(NodeImport& n, Op) {
  const List axis = n.needed(0, "axes");
  const auto dims = n.dims(1);
  const int64_t count = n.integer("num_split", 0);
  if (!dims || dims->empty() || axis.size() != 1 || count < 1 || count > 65'536) return n.unsupported("an unknown number of parts");
  const auto size = (*dims)[static_cast<size_t>(n.axis(axis[0], dims->size()))].value();
  if (!size || *size % count != 0) return n.unsupported("parts of unknown size");
  split_at(n, 1, axis[0], List(static_cast<size_t>(count), *size / count));
}

void import_split_v(NodeImport& n, Op) {
  List sizes = n.needed(1, "sizes");
  const List axis = n.needed(2, "axes");
  const auto dims = n.dims(0);
  if (!dims || dims->empty() || axis.size() != 1 || sizes.empty()) return n.unsupported("parts of unknown size");
  const auto open = std::ranges::find(sizes, -1);
  if (open != sizes.end()) {
    const auto size = (*dims)[static_cast<size_t>(n.axis(axis[0], dims->size()))].value();
    if (!size) return n.unsupported("parts of unknown size");
    *open = 0;
    *open = *size - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }
  split_at(n, 0, axis[0], std::move(sizes));
}

constexpr OperatorRow kJoins[] = {
    {"Concat", 2, -1, import_concat, Op::kConcat},
    {"ConcatV2", 2, -1, import_concat, Op::kConcat},
    {"Pack", 1, -1, import_pack},
    {"Split", 2, 2, import_split},
    {"SplitV", 3, 3, import_split_v},
    {"Unpack", 1, 1, import_unpack},
};

}  // namespace

std::span<const OperatorRow> join_operators() { return kJoins; }

}  // namespace serin::formats::tf
