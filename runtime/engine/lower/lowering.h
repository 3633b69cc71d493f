// lowering.h: the interface of a function that lowers one node: its operands as tensors, its attributes, and four kinds of result.
//
//   Status lower_cast(Lowering& at) {
//     if (at.tensor(at.input(0)).dtype == at.tensor(at.output()).dtype) return at.alias(at.output(), at.input(0));
//     return at.emit(kernels::Cast{}, {at.input(0)}, {at.output()});
//   }
//
// emit: a step with one kernel. alias: the output is a view of another tensor. view / temporary: tensors in between. refuse: not supported
// here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/program/program.h"

namespace serin::engine {

class Lowering {
 public:
  /// `tensors` maps the graph's values to the program's tensors; every operand and result of `node` has one.
  Lowering(Program& program, const graph::Node& node, const std::vector<TensorId>& tensors)
      : program_(program), node_(node), tensors_(tensors) {}

  const graph::Node& node() const { return node_; }
  graph::Op op() const { return node_.op; }

  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != graph::kNone; }
  TensorId input(size_t i) const { return tensors_[static_cast<size_t>(node_.inputs[i])]; }  ///< requires has(i)
  TensorId output(size_t i = 0) const { return tensors_[static_cast<size_t>(node_.outputs[i])]; }
  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }
  const Shape& shape(TensorId id) const { return program_.tensor(id).shape; }
  DType dtype(TensorId id) const { return program_.tensor(id).dtype; }
  bool bounded(TensorId id) const { return program_.tensor(id).storage != Storage::kFixed; }

  /// Returns integers from an attribute, or from operand `i` if it is known at load. Returns nothing if both are absent.
  std::optional<std::vector<int64_t>> integers(std::string_view attribute, size_t i) const;
  /// Returns an axis attribute, counted from the front.
  int64_t axis(std::string_view attribute, int64_t fallback, size_t rank) const;

  TensorId temporary(DType dtype, const Shape& shape);
  TensorId temporary_like(TensorId id);               ///< same dtype, shape and storage
  TensorId temporary_like(TensorId id, DType dtype);  ///< same shape and storage
  TensorId constant(graph::ConstantPtr constant);
  TensorId number(DType dtype, double value);  ///< a constant of one element
  /// `base` seen with another shape of as many elements.
  TensorId view(TensorId base, const Shape& shape);

  Status emit(kernels::Op kernel, std::vector<TensorId> inputs, std::vector<TensorId> outputs);
  /// Makes `output` a view of `base`, starting at element `offset`.
  Status alias(TensorId output, TensorId base, int64_t offset = 0);
  /// output[i0, i1, ...] = input[offset + sum(i * stride)]: an alias if those elements are contiguous, else a copy.
  Status strided(TensorId output, TensorId input, const std::vector<int64_t>& strides, int64_t offset = 0);

  /// output = input, repeated along axes of size 1 and leading ones.
  Status broadcast(TensorId output, TensorId input);

  /// kUnsupported; the caller adds the node's name as a prefix.
  static Error refuse(std::string why);

 private:
  TensorId add(Tensor tensor);

  Program& program_;
  const graph::Node& node_;
  const std::vector<TensorId>& tensors_;
};

using LowerFn = Status (*)(Lowering&);

// One file for each family. The table that assigns operators to functions is in lower.cc.
Status lower_unary(Lowering& at);         // lower_elementwise.cc
Status lower_clip(Lowering& at);          //
Status lower_swish(Lowering& at);         //
Status lower_binary(Lowering& at);        //
Status lower_pow(Lowering& at);           //
Status lower_chain(Lowering& at);         //   Max, Min, Sum, Mean of any number of operands
Status lower_where(Lowering& at);         //
Status lower_conv(Lowering& at);          // lower_window.cc
Status lower_pool(Lowering& at);          //
Status lower_global_pool(Lowering& at);   //
Status lower_matmul(Lowering& at);        // lower_matmul.cc
Status lower_fused_matmul(Lowering& at);  //
Status lower_gemm(Lowering& at);          //
Status lower_reduce(Lowering& at);        // lower_reduce.cc
Status lower_arg_max(Lowering& at);       //
Status lower_cum_sum(Lowering& at);       //
Status lower_softmax(Lowering& at);       // lower_norm.cc
Status lower_layer_norm(Lowering& at);    //
Status lower_batch_norm(Lowering& at);    //
Status lower_view(Lowering& at);          // lower_movement.cc: Reshape, Flatten, Squeeze, Unsqueeze, Identity
Status lower_transpose(Lowering& at);     //
Status lower_slice(Lowering& at);         //
Status lower_split(Lowering& at);         //
Status lower_expand(Lowering& at);        //
Status lower_tile(Lowering& at);          //
Status lower_concat(Lowering& at);        // lower_gather.cc
Status lower_pad(Lowering& at);           //
Status lower_gather(Lowering& at);        //
Status lower_non_zero(Lowering& at);      //
Status lower_cast(Lowering& at);          // lower_quant.cc: and CastLike
Status lower_bit_cast(Lowering& at);      //
Status lower_quantized_max_pool(Lowering& at);
Status lower_quantized_conv(Lowering& at);  //   QLinearConv, ConvInteger

Status lower_conv_transpose(Lowering& at);  // lower_image.cc
Status lower_deform_conv(Lowering& at);     //
Status lower_windowed_pool(Lowering& at);   //
Status lower_depth_to_space(Lowering& at);  //
Status lower_space_to_depth(Lowering& at);  //
Status lower_einsum(Lowering& at);          // lower_einsum.cc
Status lower_generic(Lowering& at);         // lower_generic.cc: by name, with all attributes

/// The activation at the end of FusedConv and FusedMatMul, from their attributes.
Result<kernels::Epilogue> lower_epilogue(const Lowering& at);

}  // namespace serin::engine
