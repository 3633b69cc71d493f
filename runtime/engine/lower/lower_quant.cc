// lower_quant.cc: conversions between element types, and convolutions of quantised tensors, whose windows are made explicit as those of Conv are. The
// other quantised operators need no more than their attributes (lower_generic).

#include "kernels/narrow.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/graph/ops/window.h"

namespace serin::engine {

namespace {

bool by_name(DType dtype) { return kernels::is_narrow(dtype) || dtype == DType::kString; }

kernels::Attributes conv_attributes(const graph::Node& node, graph::Window window) {
  kernels::Attributes attributes;
  attributes.set("strides", std::move(window.strides));
  attributes.set("dilations", std::move(window.dilations));
  attributes.set("pads", std::move(window.pads));
  attributes.set("group", node.integer("group", 1));
  attributes.set("channels_last", node.integer("channels_last", 0));
  attributes.set("activation", node.text("activation", ""));
  attributes.set("sum_activation", node.text("sum_activation", ""));
  if (node.attributes.contains("again_scale")) {
    attributes.set("again_scale", node.number("again_scale", 1));
    attributes.set("again_zero", node.integer("again_zero", 0));
    attributes.set("again_activation", node.text("again_activation", ""));
  }
  return attributes;
}

}  // namespace

/// Cast, and CastLike now that the type of its second operand is known. Ordinary types have a kind of their own; what has attributes goes by name.
Status lower_cast(Lowering& at) {
  const DType from = at.dtype(at.input(0)), to = at.dtype(at.output());
  if (from == to) return at.alias(at.output(), at.input(0));
  if (!by_name(from) && !by_name(to)) return at.emit(kernels::Cast{}, {at.input(0)}, {at.output()});
  kernels::Generic cast{.name = "Cast", .attributes = {}};
  cast.attributes.set("saturate", at.node().integer("saturate", 1));
  cast.attributes.set("round_mode", at.node().text("round_mode", "up"));
  return at.emit(std::move(cast), {at.input(0)}, {at.output()});
}

/// The same bytes, unless they are not the same in memory: integers of less than a byte have their sign there, and a bool is 0 or 1.
Status lower_bit_cast(Lowering& at) {
  const DType from = at.dtype(at.input(0)), to = at.dtype(at.output());
  const bool converts = from != to && (to == DType::kBool || (kernels::is_narrow(to) && kernels::dtype_bits(to) < 8));
  if (!converts) return at.alias(at.output(), at.input(0));
  return at.emit(kernels::Generic{.name = "BitCast", .attributes = {}}, {at.input(0)}, {at.output()});
}

Status lower_quantized_conv(Lowering& at) {
  const Shape& weight = at.shape(at.input(at.op() == graph::Op::kConvInteger ? 1 : 3));
  const Shape& x = at.shape(at.input(0));
  if (at.bounded(at.input(0))) return Lowering::refuse("slides over a tensor whose size depends on the data");
  const size_t first = at.node().integer("channels_last", 0) != 0 ? 1 : 2;
  const graph::Dims dims = graph::dims_of(x);
  SERIN_TRY(graph::Window window,
            graph::resolve_window(at.node(), std::span(dims).subspan(first, x.rank() - 2), {weight.begin() + 2, weight.end()}));
  std::vector<TensorId> inputs;
  for (size_t i = 0; i < at.node().inputs.size(); ++i) inputs.push_back(at.has(i) ? at.input(i) : kNoTensor);
  return at.emit(kernels::Generic{std::string(graph::op_name(at.op())), conv_attributes(at.node(), std::move(window))}, std::move(inputs),
                 {at.output()});
}

Status lower_quantized_max_pool(Lowering& at) {
  if (at.bounded(at.input(0))) return Lowering::refuse("slides over a tensor whose size depends on the data");
  const graph::Dims dims = graph::dims_of(at.shape(at.input(0)));
  SERIN_TRY(graph::Window window, graph::resolve_window(at.node(), std::span(dims).subspan(1, dims.size() - 2), {}));
  const std::vector<int64_t> kernel = window.kernel;
  kernels::Attributes attributes = conv_attributes(at.node(), std::move(window));
  attributes.set("kernel_shape", kernel);
  return at.emit(kernels::Generic{std::string(graph::op_name(at.op())), std::move(attributes)}, {at.input(0)}, {at.output()});
}

}  // namespace serin::engine
