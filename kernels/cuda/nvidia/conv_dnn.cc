// conv_dnn.cc: Conv by cuDNN: with its epilogue in one graph, or alone, followed by a kernel of Serin's own.

#include <utility>

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/nvidia/conv_graph.h"
#include "kernels/cuda/rows.h"

namespace serin::kernels::cuda {

namespace {

/// The products, then what follows them in place.
class Apart final : public Kernel {
 public:
  Apart(std::unique_ptr<Kernel> products, std::unique_ptr<Kernel> finish) : products_(std::move(products)), finish_(std::move(finish)) {}
  std::string_view name() const override { return "cudnn+conv_finish_cuda"; }
  size_t scratch_bytes() const override { return products_->scratch_bytes(); }
  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    Fault fault = products_->run(stream, in.first(2), out);
    return fault ? fault : finish_->run(stream, in, out);
  }

 private:
  const std::unique_ptr<Kernel> products_, finish_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_conv_dnn_apart(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                               PrepareContext& context, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  if (!op.bias && !op.epilogue.residual && op.epilogue.activation == UnaryFn::kIdentity) return refuse(why, "nothing follows its products");
  Conv alone = op;
  alone.bias = false;
  alone.epilogue = {};
  const OpDesc products{alone, {desc.inputs[0], desc.inputs[1]}, desc.outputs};
  auto graph = conv_graph(products, context.tf32, true, why);
  auto kernel = graph ? prepare_dnn(dnn, std::move(graph), *libraries.tactics, products, why) : nullptr;
  auto finish = kernel ? prepare_conv_finish(desc, context, why) : nullptr;
  if (!finish) return nullptr;
  return aligned_or(std::make_unique<Apart>(std::move(kernel), std::move(finish)), prepare_conv(desc, context, why));
}

std::unique_ptr<Kernel> prepare_conv_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                         PrepareContext& context, std::string& why) {
  const auto& op = std::get<Conv>(desc.op);
  const bool either_order = op.bias && op.epilogue.residual;
  for (const bool residual_first : {true, false}) {
    if (!residual_first && !either_order) break;
    auto graph = conv_graph(desc, context.tf32, residual_first, why);
    if (!graph) return nullptr;
    if (auto kernel = prepare_dnn(dnn, std::move(graph), *libraries.tactics, desc, why))
      return aligned_or(std::move(kernel), prepare_conv(desc, context, why));
  }
  return nullptr;
}

}  // namespace serin::kernels::cuda
