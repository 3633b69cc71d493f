// conv_graph.h: Builds a graph of cuDNN's graph API for Conv and the operations after it.
#pragma once

#include "kernels/cuda/nvidia/dnn_graph.h"

namespace serin::kernels::cuda {

/// y = act(conv(x, w) + residual + bias). In this order the library has its own fused kernels for all three. In the other order
/// (`residual_first` false) it must compile one, and only for channels last. Null, with the reason, if the API cannot express it.
std::unique_ptr<DnnGraph> conv_graph(const OpDesc& desc, bool tf32, bool residual_first, std::string& why);

}  // namespace serin::kernels::cuda
