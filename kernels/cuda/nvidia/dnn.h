// dnn.h: cuDNN's handle, and the kernels that go through it. Without cudnn-frontend's headers, which take most of a minute to compile.
#pragma once

#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

/// Opened with the backend; kernels take it in turn (a handle knows one stream at a time).
class Dnn;
std::shared_ptr<Dnn> open_dnn(std::string& why);
/// "cuDNN 9.19.0"
std::string dnn_version();

/// Conv, in both layouts, with all that follows it in one graph.
std::unique_ptr<Kernel> prepare_conv_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                         PrepareContext& context, std::string& why);
/// The products by the library, what follows them by a kernel of our own; refused where nothing does.
std::unique_ptr<Kernel> prepare_conv_dnn_apart(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                               PrepareContext& context, std::string& why);
/// Attention of 16-bit floats without a mask.
std::unique_ptr<Kernel> prepare_attention_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                              PrepareContext& context, std::string& why);

}  // namespace serin::kernels::cuda
