// operators.h: lists the supported ONNX operators and the functions that import them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/formats/onnx/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::onnx {

struct OperatorRow {
  std::string_view name;
  int64_t since;               ///< the opset that introduced the operator (kFirstModernOpset, 7, also for all earlier ones)
  int min_inputs, max_inputs;  ///< -1: any number
  int outputs;                 ///< maximum; -1: any number
  void (*import)(NodeImport& node, graph::Op op);
  graph::Op op = graph::Op::kIdentity;  ///< the operator that `import` emits, for functions that serve several operators
  /// Names, separated by spaces, of attributes that import_plain copies unchanged. Tensors are not among them: another function makes them
  /// operands.
  std::string_view attributes = {};
};

/// Operators of one domain ("" is the default one), in any order.
struct OperatorFamily {
  std::string_view domain;
  std::span<const OperatorRow> rows;
};

inline constexpr int64_t kOldestOpset = 1;
inline constexpr int64_t kNewestOpset = 27;

/// Null if the operator is not supported. `domain` "" and "ai.onnx" are the same.
const OperatorRow* find_operator(std::string_view domain, std::string_view op_type);

// Families whose table is in a separate file (<family>_operators.cc).
OperatorFamily math_operators();        // functions of single elements, bits, windows, transforms, random numbers
OperatorFamily norm_operators();        // normalisations, losses, training steps
OperatorFamily training_operators();    // ai.onnx.preview.training
OperatorFamily selection_operators();   // gathering, scattering, sorting, boxes
OperatorFamily image_operators();       // resizing, sampling, regions, and the convolutions other than Conv
OperatorFamily quant_operators();       // quantisation and narrow types
OperatorFamily recurrent_operators();   // RNN, GRU, LSTM, attention and operators of transformers
OperatorFamily text_operators();        // strings
OperatorFamily classifier_operators();  // ai.onnx.ml
OperatorFamily dynamic_operators();     // sequences, optionals and Scan
OperatorFamily microsoft_operators();   // com.microsoft: operators that quantisers and optimisers write
OperatorFamily microsoft_quant_operators();
OperatorFamily microsoft_block_operators();

OperatorFamily preview_operators();  // ai.onnx.preview

Status check_counts(const OperatorRow& row, const NodeImport& node);

// The families, one file each. `op` is that of the row.
void import_plain(NodeImport& node, graph::Op op);  // operands unchanged, and the attributes of the row

// elementwise.cc
void import_with_alpha_beta(NodeImport& node, graph::Op op);
void import_is_inf(NodeImport& node, graph::Op op);
void import_gelu(NodeImport& node, graph::Op op);
void import_mod(NodeImport& node, graph::Op op);
void import_clip(NodeImport& node, graph::Op op);
void import_cast(NodeImport& node, graph::Op op);

// reduce.cc
void import_reduce(NodeImport& node, graph::Op op);
void import_reduce_log_sum(NodeImport& node, graph::Op op);
void import_arg(NodeImport& node, graph::Op op);
void import_softmax(NodeImport& node, graph::Op op);
void import_cumsum(NodeImport& node, graph::Op op);

// movement.cc
void import_identity(NodeImport& node, graph::Op op);
void import_concat(NodeImport& node, graph::Op op);
void import_flatten(NodeImport& node, graph::Op op);
void import_gather(NodeImport& node, graph::Op op);
void import_pad(NodeImport& node, graph::Op op);
void import_reshape(NodeImport& node, graph::Op op);
void import_shape(NodeImport& node, graph::Op op);
void import_slice(NodeImport& node, graph::Op op);
void import_split(NodeImport& node, graph::Op op);
void import_squeeze(NodeImport& node, graph::Op op);
void import_transpose(NodeImport& node, graph::Op op);

// network.cc
void import_conv(NodeImport& node, graph::Op op);
graph::Attributes conv_attributes(NodeImport& node);
void import_gemm(NodeImport& node, graph::Op op);
void import_pool(NodeImport& node, graph::Op op);
graph::Attributes pool_attributes(NodeImport& node, graph::Op op);

// norm_operators.cc
void import_batch_normalization(NodeImport& node, graph::Op op);
void import_dropout(NodeImport& node, graph::Op op);
void import_layer_normalization(NodeImport& node, graph::Op op);

// constant.cc
void import_constant(NodeImport& node, graph::Op op);
void import_constant_of_shape(NodeImport& node, graph::Op op);

// gradient.cc
void import_gradient(NodeImport& node, graph::Op op);

// control.cc
void import_if(NodeImport& node, graph::Op op);
void import_loop(NodeImport& node, graph::Op op);
void import_scan(NodeImport& node, graph::Op op);
void import_sequence_map(NodeImport& node, graph::Op op);

}  // namespace serin::formats::onnx
