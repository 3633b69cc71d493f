// lower_image.cc: convolutions and pools that have no kind of their own: by name, with the window resolved into kernel_shape, strides, dilations and pads.
// DepthToSpace and SpaceToDepth are transposes of six axes.

#include <array>

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"
#include "runtime/graph/ops/window.h"

namespace serin::engine {

namespace {

Result<graph::Dims> spatial_dims(Lowering& at) {
  for (const BoundedDim& dim : at.tensor(at.input(0)).bounded) {
    if (dim.axis >= 2) return Lowering::refuse("slides over an axis whose size depends on the data");
  }
  const graph::Dims dims = graph::dims_of(at.shape(at.input(0)));
  return graph::Dims(dims.begin() + 2, dims.end());
}

Status emit_windowed(Lowering& at, const graph::Window& window, std::initializer_list<std::string_view> integers) {
  kernels::Generic generic{.name = std::string(graph::op_name(at.op())), .attributes = {}};
  generic.attributes.set("kernel_shape", window.kernel);
  generic.attributes.set("strides", window.strides);
  generic.attributes.set("dilations", window.dilations);
  generic.attributes.set("pads", window.pads);
  for (const std::string_view key : integers) {
    if (at.node().attributes.contains(key)) generic.attributes.set(std::string(key), at.node().integer(key, 0));
  }
  std::vector<TensorId> inputs, outputs;
  for (size_t i = 0; i < at.node().inputs.size(); ++i) inputs.push_back(at.has(i) ? at.input(i) : kNoTensor);
  for (size_t i = 0; i < at.node().outputs.size(); ++i) outputs.push_back(at.output(i));
  return at.emit(std::move(generic), std::move(inputs), std::move(outputs));
}

std::vector<int64_t> kernel_of_weight(Lowering& at) {
  const Shape& weight = at.shape(at.input(1));
  return {weight.begin() + 2, weight.end()};
}

/// The operand as [n, a, b, c, d, e] in dense order, the axes taken in the order `permutation`, as one copy.
Status rearrange(Lowering& at, const std::array<int64_t, 6>& dims, const std::array<size_t, 6>& permutation) {
  if (at.bounded(at.input(0))) return Lowering::refuse("rearranges a tensor whose size depends on the data");
  const kernels::Strides dense = kernels::row_major_strides(Shape(dims));
  Shape shape;
  std::vector<int64_t> strides;
  for (const size_t axis : permutation) {
    shape.push_back(dims[axis]);
    strides.push_back(dense[axis]);
  }
  return at.strided(at.view(at.output(), shape), at.input(0), strides);
}

}  // namespace

Status lower_conv_transpose(Lowering& at) {
  SERIN_TRY(const graph::Dims spatial, spatial_dims(at));
  SERIN_TRY(const graph::Window window, graph::resolve_transposed_window(at.node(), spatial, kernel_of_weight(at)));
  return emit_windowed(at, window, {"group"});
}

Status lower_deform_conv(Lowering& at) {
  SERIN_TRY(const graph::Dims spatial, spatial_dims(at));
  SERIN_TRY(const graph::Window window, graph::resolve_window(at.node(), spatial, kernel_of_weight(at)));
  return emit_windowed(at, window, {"group", "offset_group"});
}

/// MaxPoolWithIndices, LpPool.
Status lower_windowed_pool(Lowering& at) {
  SERIN_TRY(const graph::Dims spatial, spatial_dims(at));
  SERIN_TRY(const graph::Window window, graph::resolve_window(at.node(), spatial, {}));
  return emit_windowed(at, window, {"storage_order", "p"});
}

/// Channels are [block, block, c] (DCR) or [c, block, block] (CRD); the blocks become parts of the rows and columns.
Status lower_depth_to_space(Lowering& at) {
  const Shape& x = at.shape(at.input(0));
  const int64_t block = at.node().integer("blocksize", 1), channels = x[1] / (block * block);
  if (at.node().text("mode", "DCR") == "CRD") return rearrange(at, {x[0], channels, block, block, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
  return rearrange(at, {x[0], block, block, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

Status lower_space_to_depth(Lowering& at) {
  const Shape& x = at.shape(at.input(0));
  const int64_t block = at.node().integer("blocksize", 1);
  return rearrange(at, {x[0], x[1], x[2] / block, block, x[3] / block, block}, {0, 3, 5, 1, 2, 4});
}

}  // namespace serin::engine
