// attention_dnn.cc: Attention by cuDNN's fused graph for it. q, k and v may have any strides. A past, masks, padding and softcap are left
// to Serin's own kernel (attention_tiles.cu), as is a causal order that does not begin where the keys do.

#include <utility>

#include "kernels/attention.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/nvidia/dnn_graph.h"
#include "kernels/cuda/rows.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

namespace {

using Operands = AttentionOperands;

/// Whose first element is not the tensor's: the library is given addresses.
class Shifted final : public Kernel {
 public:
  Shifted(std::unique_ptr<Kernel> kernel, const AttentionRun& run, DType dtype)
      : kernel_(std::move(kernel)), offsets_{run.q_offset, run.k_offset, run.v_offset}, size_(static_cast<int64_t>(dtype_size(dtype))) {}
  std::string_view name() const override { return "cudnn_sdpa"; }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    TensorView operands[3] = {in[0], in[1], in[2]};
    for (size_t i = 0; i < 3; ++i) operands[i].data = operands[i].as<std::byte>() + offsets_[i] * size_;
    return kernel_->run(stream, operands, out);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const int64_t offsets_[3], size_;
};

std::vector<int64_t> strides_of(const HeadStrides& at) { return {at.b, at.h, at.r, 1}; }

}  // namespace

std::unique_ptr<Kernel> prepare_attention_dnn(const std::shared_ptr<Dnn>& dnn, const Libraries& libraries, const OpDesc& desc,
                                              PrepareContext& context, std::string& why) {
  const auto op = attention_of(std::get<Generic>(desc.op).attributes, desc.inputs, desc.outputs, why);
  if (!op) return nullptr;
  const DType dtype = desc.inputs[Operands::kQ].dtype;
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return refuse(why, "only 16-bit floats");
  if (desc.outputs.size() > 1) return refuse(why, "it returns present keys or scores");
  for (size_t i = Operands::kMask; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].dtype != DType::kUndefined) return refuse(why, "a mask, a past or padding");
  }
  if (op->softcap > 0) return refuse(why, "a softcap");
  if (op->head % 8 != 0 || op->v_head % 8 != 0) return refuse(why, "heads of other than multiples of 8 elements");
  const AttentionRun run(*op, desc.inputs);
  if (run.q_len == 0 || run.kv_len == 0 || run.batch == 0) return refuse(why, "there are no elements");
  if (run.q_offset % 8 != 0 || run.k_offset % 8 != 0 || run.v_offset % 8 != 0)
    return refuse(why, "operands that are not aligned to 16 bytes");

  auto made = std::make_unique<DnnGraph>();
  made->graph()
      .set_io_data_type(*dnn_type(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto q = made->operand(0, {run.batch, op->q_heads, run.q_len, op->head}, strides_of(run.q));
  const auto k = made->operand(1, {run.batch, op->kv_heads, run.kv_len, op->head}, strides_of(run.k));
  const auto v = made->operand(2, {run.batch, op->kv_heads, run.kv_len, op->v_head}, strides_of(run.v));
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(false).set_attn_scale(static_cast<float>(op->scale));
  if (op->causal) attributes.set_causal_mask(true);
  DnnGraph::answer(made->graph().sdpa(q, k, v, attributes)[0], {run.batch, op->q_heads, run.q_len, op->v_head}, strides_of(run.y),
                   *dnn_type(dtype));
  made->key = "attention " + std::string(dtype_name(dtype)) + (op->causal ? " causal" : "");
  for (const int64_t number : {run.batch, op->q_heads, op->kv_heads, run.q_len, run.kv_len, op->head, op->v_head, run.q.b, run.q.h, run.q.r,
                               run.k.b, run.k.h, run.k.r, run.v.b, run.v.h, run.v.r, run.y.b, run.y.h, run.y.r})
    made->key += " " + std::to_string(number);
  auto kernel = prepare_dnn(dnn, std::move(made), *libraries.tactics, desc, why);
  if (!kernel) return nullptr;
  return aligned_or(std::make_unique<Shifted>(std::move(kernel), run, dtype), prepare_attention(desc, context, why));
}

}  // namespace serin::kernels::cuda
