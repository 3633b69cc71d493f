// space_operators.cc: images taken apart into the batch.
//
// On CPUs TensorFlow writes a dilated convolution as SpaceToBatchND, Conv2D, BatchToSpaceND. The blocks are the dilations, and padding that
// is cut off again was only there to fill the last block. The three become one Conv; what was emitted for the first two has no reader then.

#include "runtime/formats/tensorflow/space.h"

#include <algorithm>

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// The dilated convolution, if the operand is the middle of one.
bool join_convolution(NodeImport& n, List block, List crops) {
  const auto apart = n.value(0)->apart;
  if (!apart || apart->weight == kNone || crops.size() != 2 * block.size()) return false;
  if (apart->line) {
    block.insert(block.begin(), 1);
    crops.insert(crops.begin(), {0, 0});
  }
  const size_t m = block.size();
  if (block != apart->block || apart->pads.size() != 2 * m) return false;
  List pads = apart->pads;
  for (size_t i = 0; i < m; ++i) {
    pads[i] -= crops[2 * i];
    pads[m + i] -= crops[2 * i + 1];
  }
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad < 0 || pad > INT32_MAX; })) return false;
  graph::Builder& b = n.builder();
  const ValueId joined =
      b.add(Op::kConv, {n.scope().first(*apart->image), apart->weight},
            {{"kernel_shape", apart->kernel}, {"strides", List(m, 1)}, {"dilations", block}, {"pads", pads}, {"group", apart->group}});
  n.out_first(apart->line ? b.squeeze(joined, {2}) : joined);
  return true;
}

}  // namespace

void expand_line(NodeImport& n) {
  TakenApart apart = *n.value(0)->apart;
  graph::Builder& b = n.builder();
  Value& image = *apart.image;
  auto widened = std::make_shared<Value>();
  if (image.first != kNone)
    widened->first = b.unsqueeze(image.first, {2});
  else
    widened->plain = b.unsqueeze(n.scope().plain(image), {1});
  apart.image = std::move(widened);
  apart.block.insert(apart.block.begin(), 1);
  apart.pads.insert(apart.pads.begin() + 1, 0);
  apart.pads.insert(apart.pads.begin(), 0);
  apart.line = true;
  const ValuePtr value = plain_value(b.unsqueeze(n.in(0), {1}));
  value->apart = std::make_shared<const TakenApart>(std::move(apart));
  n.out_value(value);
}

void squeeze_line(NodeImport& n) {
  auto value = std::make_shared<Value>();
  if (n.prefers_first(0))
    value->first = n.builder().squeeze(n.first(0), {2});
  else
    value->plain = n.builder().squeeze(n.in(0), {1});
  value->apart = n.value(0)->apart;
  n.out_value(value);
}

/// The diagonal blocks of a batch: axis 0 takes up, or gives back, parts of the spatial axes.
void import_space_to_batch(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const List block = n.needed(1, "blocks"), pads = n.needed(2, "pads");
  const auto rank = n.rank(0);
  const size_t m = block.size();
  if (!rank || m == 0 || m + 1 > *rank || pads.size() != 2 * m || std::ranges::any_of(block, [](int64_t v) { return v < 1; }))
    return n.unsupported("unknown blocks");
  List all(2 * *rank, 0);
  for (size_t i = 0; i < m; ++i) {
    all[i + 1] = pads[2 * i];
    all[*rank + i + 1] = pads[2 * i + 1];
  }
  const ValueId padded = b.add(Op::kPad, {n.in(0)}, {{"pads", all}, {"mode", std::string("constant")}});
  List shape, order, result = {-1};
  const auto sizes = b.dims(padded);
  if (!sizes) return;
  shape.push_back((*sizes)[0].value().value_or(-1));
  for (size_t i = 0; i < m; ++i) {
    const auto size = (*sizes)[i + 1].value();
    if (!size || *size % block[i] != 0) return n.unsupported("an image of unknown size");
    shape.insert(shape.end(), {*size / block[i], block[i]});
    result.push_back(*size / block[i]);
    order.push_back(static_cast<int64_t>(2 * i + 2));
  }
  order.push_back(0);
  for (size_t i = 0; i < m; ++i) order.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t axis = m + 1; axis < *rank; ++axis) {
    const auto size = (*sizes)[axis].value();
    if (!size) return n.unsupported("an image of unknown size");
    order.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(*size);
    result.push_back(*size);
  }
  const ValuePtr value = plain_value(b.reshape(b.transpose(b.reshape(padded, shape), order), result));
  if (m + 2 == *rank) {
    TakenApart apart{n.value(0), block, List(2 * m), kNone, {}, 1, false};
    for (size_t i = 0; i < m; ++i) {
      apart.pads[i] = pads[2 * i];
      apart.pads[m + i] = pads[2 * i + 1];
    }
    value->apart = std::make_shared<const TakenApart>(std::move(apart));
  }
  n.out_value(value);
}

void import_batch_to_space(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const List block = n.needed(1, "blocks"), crops = n.needed(2, "crops");
  const auto dims = n.dims(0);
  const size_t m = block.size();
  if (join_convolution(n, block, crops)) return;
  if (!dims || m == 0 || m + 1 > dims->size() || crops.size() != 2 * m) return n.unsupported("unknown blocks");
  List shape = block, order = {static_cast<int64_t>(m)}, result = {-1};
  shape.push_back(-1);
  for (size_t axis = 1; axis < dims->size(); ++axis) {
    const auto size = (*dims)[axis].value();
    if (!size) return n.unsupported("an image of unknown size");
    shape.push_back(*size);
    order.push_back(static_cast<int64_t>(m + axis));
    if (axis <= m) order.push_back(static_cast<int64_t>(axis - 1));
    result.push_back(axis <= m ? *size * block[axis - 1] : *size);
  }
  ValueId x = b.reshape(b.transpose(b.reshape(n.in(0), shape), order), result);
  for (size_t i = 0; i < m; ++i)
    if (crops[2 * i] != 0 || crops[2 * i + 1] != 0)
      x = b.slice(x, static_cast<int64_t>(i) + 1, crops[2 * i], result[i + 1] - crops[2 * i + 1]);
  n.out(x);
}

}  // namespace serin::formats::tf
