// conv_graph.h: Conv and what follows it in words of cuDNN's graph API.
#pragma once

#include "kernels/cuda/nvidia/dnn_graph.h"

namespace serin::kernels::cuda {

/// y = act(conv(x, w) + residual + bias). In this order the library has fused kernels of its own for all three, without it (`residual_first` false) it must
/// compile one, and only for channels last. Null, with the reason, where it cannot say it.
std::unique_ptr<DnnGraph> conv_graph(const OpDesc& desc, bool tf32, bool residual_first, std::string& why);

}  // namespace serin::kernels::cuda
