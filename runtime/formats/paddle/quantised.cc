// quantised.cc: programs of quantisation, by training or after it.
//
// Paddle's scale is the largest magnitude: q = round(x / scale * most), x = q * scale / most, with most = 127 for 8 bits. A Graph's is one step,
// scale / most. The quantised values are floats in a program; between QuantizeLinear and DequantizeLinear they are bytes here, so that the passes
// find them. "fake" operators do both.

#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

double most_of(Node& node) {
  const int64_t bits = node.integer("bit_length|quant_bits", 8);
  if (bits != 8) node.refuse("quantisation to other than 8 bits");
  return 127;
}

/// One step: of rank 0, or one for each channel.
ValueId step(Node& node, ValueId scale, double most) {
  const graph::ConstantPtr known = node.b.graph().constant(scale);
  if (!known || known->dtype != DType::kFloat32) {
    node.refuse("a scale that is computed");
    return scale;
  }
  const auto from = known->span<float>();
  std::vector<double> steps;
  for (const float each : from) {
    if (!(each > 0) || !std::isfinite(each)) node.corrupt("a scale that is not positive");
    steps.push_back(static_cast<double>(each) / most);
  }
  return node.floats(steps, steps.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(steps.size())});
}

ValueId zeros_like(Node& node, ValueId scale) {
  const graph::ConstantPtr known = node.b.graph().constant(scale);
  std::byte* memory = nullptr;  // zeroed
  return node.b.constant(graph::make_mutable_constant(DType::kInt8, known ? known->shape : Shape{}, &memory));
}

Attributes axis_of(Node& node, ValueId x, ValueId scale) {
  if (node.b.rank(scale) == size_t{0}) return {};
  return {{"axis", node.axis(std::max<int64_t>(node.integer("quant_axis", 0), 0), node.rank(x))}};
}

ValueId quantised(Node& node, ValueId x, ValueId scale) {
  return node.b.add(Op::kQuantizeLinear, {x, scale, zeros_like(node, scale)}, axis_of(node, x, scale));
}

/// Weights that are stored as whole floats; bytes from the start, so that the passes find quantised products.
graph::ConstantPtr as_bytes(const graph::ConstantPtr& floats) {
  return graph::make_constant(DType::kInt8, floats->shape, [floats](std::span<std::byte> to) -> Status {
    const auto from = floats->span<float>();
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<std::byte>(static_cast<int8_t>(std::min(std::max(from[i], -128.0F), 127.0F)));
    return {};
  });
}

ValueId dequantised(Node& node, ValueId x, ValueId scale) {
  const graph::ConstantPtr known = node.b.graph().constant(x);
  if (known && known->dtype == DType::kFloat32) x = node.b.constant(as_bytes(known));
  if (node.b.dtype(x) != DType::kInt8) x = node.b.cast(x, DType::kInt8);
  return node.b.add(Op::kDequantizeLinear, {x, scale, zeros_like(node, scale)}, axis_of(node, x, scale));
}

void import_quantize(Node& node, Op /*op*/) {
  const ValueId scale = step(node, node.in("Scale"), most_of(node));
  if (!node.b.error()) node.out("Y", quantised(node, node.in("X"), scale));
}

void import_dequantize(Node& node, Op /*op*/) {
  const ValueId scale = step(node, node.in("Scale"), most_of(node));
  if (!node.b.error()) node.out("Y", dequantised(node, node.in("X"), scale));
}

/// fake_quantize_*: quantises with the scale of training. fake_dequantize_*: max_range is `most`.
void import_fake_quantize(Node& node, Op /*op*/) {
  const ValueId scale = step(node, node.in("InScale"), most_of(node));
  if (node.b.error()) return;
  const ValueId q = quantised(node, node.in("X"), scale);
  const bool both = node.source().type.find("quantize_dequantize") != std::string::npos;
  node.out("Out", both ? dequantised(node, q, scale) : q);
  node.out("OutScale", node.in("InScale"));
}

/// The scale of each channel, or of the tensor, is its own largest magnitude: only of weights.
void import_fake_abs_max(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const graph::ConstantPtr known = node.b.graph().constant(x);
  const double most = most_of(node);
  if (!known || known->dtype != DType::kFloat32 || known->elements() == 0) return node.refuse("a scale that is computed");
  const bool channels = node.source().type.find("channel_wise") != std::string::npos;
  const auto axis = static_cast<size_t>(channels ? node.axis(node.integer("quant_axis", 0), known->shape.rank()) : 0);
  if (node.b.error()) return;
  const int64_t count = channels ? known->shape[axis] : 1;
  int64_t run = 1;
  for (size_t i = axis + 1; channels && i < known->shape.rank(); ++i) run *= known->shape[i];
  std::vector<double> scales(static_cast<size_t>(count), 1e-30);
  const auto from = known->span<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    double& scale = scales[channels ? (i / static_cast<size_t>(run)) % static_cast<size_t>(count) : 0];
    scale = std::max(scale, std::abs(static_cast<double>(from[i])));
  }
  const ValueId largest = node.floats(scales, Shape{count}), scale = step(node, largest, most);
  if (node.b.error()) return;
  const ValueId q = quantised(node, x, scale);
  node.out("Out", node.source().type.find("quantize_dequantize") != std::string::npos ? dequantised(node, q, scale) : q);
  node.out("OutScale", largest);
}

void import_fake_dequantize(Node& node, Op /*op*/) {
  const ValueId scale = step(node, node.in(node.all("Scales").empty() ? "Scale" : "Scales"), node.number("max_range", 127));
  if (!node.b.error()) node.out("Out", dequantised(node, node.in("X"), scale));
}

/// moving_average_abs_max_scale only observes.
void import_observer(Node& node, Op /*op*/) { node.out("Out", node.in("X")); }

constexpr OperatorRow kQuantisedRows[] = {
    {"dequantize_linear", "dequantize_linear", "X Scale ZeroPoint", "Y", import_dequantize},
    {"fake_channel_wise_dequantize_max_abs fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs fake_dequantize_max_abs",
     "X Scale", "Out", import_fake_dequantize},
    {"fake_channel_wise_quantize_abs_max fake_channel_wise_quantize_dequantize_abs_max fake_quantize_abs_max "
     "fake_quantize_dequantize_abs_max",
     "fake_channel_wise_quantize_abs_max fake_channel_wise_quantize_dequantize_abs_max fake_quantize_abs_max "
     "fake_quantize_dequantize_abs_max",
     "X", "Out OutScale", import_fake_abs_max},
    {"fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max fake_quantize_range_abs_max",
     "fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max fake_quantize_range_abs_max", "X InScale",
     "Out OutScale", import_fake_quantize},
    {"moving_average_abs_max_scale", "moving_average_abs_max_scale", "X", "Out", import_observer},
    {"quantize_linear", "quantize_linear", "X Scale ZeroPoint", "Y", import_quantize},
};

}  // namespace

std::span<const OperatorRow> quantised_operators() { return kQuantisedRows; }

}  // namespace serin::formats::paddle
