// conv_dnn.h: Conv by cuDNN. The only header that conv_dnn.cc shows: cudnn-frontend takes most of a minute to compile, once.
#pragma once

#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

/// cuDNN's handle, opened with the backend; kernels take it in turn (a handle knows one stream at a time).
class Dnn;
std::shared_ptr<Dnn> open_dnn(std::string& why);
/// "cuDNN 9.19.0"
std::string dnn_version();

std::unique_ptr<Kernel> prepare_conv_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc, PrepareContext&,
                                         std::string& why);

}  // namespace serin::kernels::cuda
