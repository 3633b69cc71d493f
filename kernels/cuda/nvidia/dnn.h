// dnn.h: Declares cuDNN's handle and the kernels that use it, without cudnn-frontend's headers, which take most of a minute to compile.
#pragma once

#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

/// Opened with the backend; kernels use it in turn (a handle has one stream at a time).
class Dnn;
std::shared_ptr<Dnn> open_dnn(std::string& why);
/// "cuDNN 9.19.0"
std::string dnn_version();

/// Conv, in both layouts, with all following operations in one graph.
std::unique_ptr<Kernel> prepare_conv_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                         PrepareContext& context, std::string& why);
/// The library computes the products, our own kernel the following operations; refused if there are none.
std::unique_ptr<Kernel> prepare_conv_dnn_apart(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                               PrepareContext& context, std::string& why);
/// MatMul of 16-bit floats with its whole epilogue in one graph.
std::unique_ptr<Kernel> prepare_matmul_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                           PrepareContext& context, std::string& why);
/// Attention of 16-bit floats without a mask.
std::unique_ptr<Kernel> prepare_attention_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                              PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cuda
