// conv_graph.cc: builds the cuDNN graph of a convolution and its epilogue. f32 keeps its precision: engines that round operands for tensor
// cores are left out unless tf32 was requested. Between the operators of a graph everything is f32 and never stored.
//
// The library counts axes as [n, c, spatial...] whatever lies in memory; a layout is the strides.

#include "kernels/cuda/nvidia/conv_graph.h"

#include <optional>
#include <span>
#include <utility>

#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

using TensorPtr = DnnGraph::TensorPtr;

/// A tensor as the library sees it. Of one spatial axis it knows nothing: there are two then, the first of one element.
struct Seen {
  std::vector<int64_t> dims, strides;

  Seen(const Shape& shape, bool channels_last) {
    const Strides dense = row_major_strides(shape);
    const auto add = [&](size_t axis) {
      dims.push_back(shape[axis]);
      strides.push_back(dense[axis]);
    };
    add(0);
    if (channels_last) add(shape.rank() - 1);
    for (size_t axis = 1; axis + (channels_last ? 1 : 0) < shape.rank(); ++axis) add(axis);
    if (shape.rank() != 3) return;
    dims.insert(dims.begin() + 2, 1);
    strides.insert(strides.begin() + 2, dims.back() * strides.back());
  }
};

/// For each spatial axis.
std::vector<int64_t> of_axes(std::span<const int64_t> values, int64_t of_one_element) {
  std::vector<int64_t> all(values.begin(), values.end());
  if (all.size() == 1) all.insert(all.begin(), of_one_element);
  return all;
}

/// The strides of one value for each channel; those of axes of one element decide about the layout, too.
Seen along_channels(int64_t channels, size_t axes, bool channels_last) {
  Shape shape{1};
  if (!channels_last) shape.push_back(channels);
  for (size_t axis = 0; axis < axes; ++axis) shape.push_back(1);
  if (channels_last) shape.push_back(channels);
  return {shape, channels_last};
}

std::string key_of(const OpDesc& desc, bool tf32, bool residual_first) {
  const auto& op = std::get<Conv>(desc.op);
  std::string key = "conv " + std::string(dtype_name(desc.outputs[0].dtype)) + (tf32 ? " tf32 " : " ") + (op.channels_last ? "last " : "") +
                    (residual_first ? "" : "bias-first ") + desc.inputs[0].shape.str() + desc.inputs[1].shape.str() +
                    desc.outputs[0].shape.str();
  for (const auto* list : {&op.strides, &op.dilations, &op.pads}) {
    for (const int64_t each : *list) key += " " + std::to_string(each);
  }
  return key + " " + std::to_string(op.bias) + std::to_string(op.epilogue.residual) + " " +
         std::to_string(static_cast<int>(op.epilogue.activation));
}

std::string refusal_of(const OpDesc& desc) {
  const auto& op = std::get<Conv>(desc.op);
  const size_t axes = op.strides.size();
  if (!dnn_type(desc.outputs[0].dtype)) return "cuDNN convolves f32, f16 and bf16 here";
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != desc.outputs[0].dtype) return "inputs differ in dtype";
  }
  if (axes < 1 || axes > 3) return "only one to three spatial axes";
  if (desc.outputs[0].shape.elements() == 0 || desc.inputs[0].shape.elements() == 0) return "there are no elements";
  if (op.epilogue.residual && desc.inputs.back().shape != desc.outputs[0].shape) return "the residual broadcasts";
  return {};
}

}  // namespace

std::unique_ptr<DnnGraph> conv_graph(const OpDesc& desc, bool tf32, bool residual_first, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  why = refusal_of(desc);
  if (!why.empty()) return nullptr;
  const auto activation = dnn_activation(op.epilogue);
  const bool activated = op.epilogue.activation != UnaryFn::kIdentity;
  if (activated && !activation) {
    why = "cuDNN has no such activation";
    return nullptr;
  }
  const size_t axes = op.strides.size();
  const fe::DataType_t type = *dnn_type(desc.outputs[0].dtype);
  const Seen x(desc.inputs[0].shape, op.channels_last), weight(desc.inputs[1].shape, op.channels_last),
      y(desc.outputs[0].shape, op.channels_last);

  auto made = std::make_unique<DnnGraph>();
  fe::graph::Graph& graph = made->graph();
  graph.set_io_data_type(type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
  if (type == fe::DataType_t::FLOAT && !tf32) {
    using Note = fe::NumericalNote_t;
    made->imprecise = {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS, Note::REDUCED_PRECISION_REDUCTION,
                       Note::FFT,         Note::WINOGRAD_TILE_6x6,   Note::WINOGRAD_TILE_13x13};
  }
  const std::span<const int64_t> pads(op.pads);
  TensorPtr value = graph.conv_fprop(made->operand(0, x.dims, x.strides), made->operand(1, weight.dims, weight.strides),
                                     fe::graph::Conv_fprop_attributes()
                                         .set_pre_padding(of_axes(pads.first(axes), 0))
                                         .set_post_padding(of_axes(pads.last(axes), 0))
                                         .set_stride(of_axes(op.strides, 1))
                                         .set_dilation(of_axes(op.dilations, 1)));
  value->set_dim(y.dims).set_stride(y.strides);
  const auto add = [&](const TensorPtr& operand) { value = made->sum(value, operand, y.dims, y.strides); };
  const auto add_residual = [&] { add(made->operand(static_cast<int64_t>(desc.inputs.size()) - 1, y.dims, y.strides)); };
  if (op.epilogue.residual && residual_first) add_residual();
  if (op.bias) {
    const Seen bias = along_channels(y.dims[1], axes, op.channels_last);
    add(made->operand(2, bias.dims, bias.strides));
  }
  if (op.epilogue.residual && !residual_first) add_residual();
  if (activated) value = graph.pointwise(value, *activation);
  DnnGraph::answer(value, y.dims, y.strides, type);
  made->key = key_of(desc, tf32, residual_first);
  return made;
}

}  // namespace serin::kernels::cuda
