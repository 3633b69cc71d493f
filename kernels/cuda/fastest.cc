// fastest.cc: chooses the fastest row for an operator by timing. Where none can be timed (no memory is left, the device is lost), the first
// row runs the operator.

#include "kernels/cuda/fastest.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/cuda/trial.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

namespace {

/// A kernel under the name of its row.
class Chosen final : public Kernel {
 public:
  Chosen(std::unique_ptr<Kernel> kernel, std::string row)
      : kernel_(std::move(kernel)), name_(kernel_->name().empty() ? std::move(row) : std::string(kernel_->name())) {}
  Fault run(Stream& stream, Inputs in, Outputs out) const override { return kernel_->run(stream, in, out); }
  std::string explain(int64_t detail) const override { return kernel_->explain(detail); }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string_view name() const override { return name_; }
  uint32_t packed_inputs() const override { return kernel_->packed_inputs(); }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const std::string name_;
};

/// The operands of one operator.
class Operands {
 public:
  explicit Operands(const OpDesc& desc) {
    for (const TensorDesc& input : desc.inputs) inputs_.push_back(view(input));
    for (const TensorDesc& output : desc.outputs) outputs_.push_back(view(output));
  }

  std::optional<double> time(const Kernel& kernel) {
    Stream stream;
    stream.queue = trial_.stream();
    return trial_.time(kernel.scratch_bytes(), [&](void* scratch) {
      stream.scratch = static_cast<std::byte*>(scratch);
      std::vector<TensorView> outputs = outputs_;
      return !kernel.run(stream, inputs_, outputs);
    });
  }

 private:
  TensorView view(const TensorDesc& tensor) {
    TensorView made{tensor.dtype, tensor.shape, nullptr};
    if (tensor.dtype != DType::kUndefined) made.data = trial_.take(made.bytes());
    return made;
  }

  Trial trial_;
  std::vector<TensorView> inputs_, outputs_;
};

void add(std::string& text, const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) text += (text.back() == ' ' ? "" : ",") + std::to_string(number);
  text += ' ';
}

void add(std::string& text, const Epilogue& epilogue, bool bias) {
  add(text, {static_cast<int64_t>(epilogue.activation), epilogue.residual, bias});
}

/// What decides how long an operator takes, and which rows contend: the same operator may be decided about twice, by a row among others that is such a row itself.
std::string key_of(const std::vector<KernelRow>& rows, const OpDesc& desc, bool tf32) {
  std::string text;
  for (const KernelRow& row : rows) text += row.name + " ";
  text += kOpNames[desc.op.index()];
  text += tf32 ? " tf32 " : " ";
  for (const auto* list : {&desc.inputs, &desc.outputs}) {
    for (const TensorDesc& tensor : *list) text += std::string(dtype_name(tensor.dtype)) + tensor.shape.str() + " ";
  }
  std::visit(
      [&text](const auto& op) {
        using Kind = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Kind, Conv>) {
          for (const auto* list : {&op.strides, &op.dilations, &op.pads}) add(text, *list);
          add(text, {op.group, op.channels_last});
          add(text, op.epilogue, op.bias);
        } else if constexpr (std::is_same_v<Kind, MatMul>) {
          add(text, {op.transpose_a, op.transpose_b});
          add(text, op.epilogue, op.bias);
        } else if constexpr (std::is_same_v<Kind, Generic>) {
          text += op.name + " ";
          for (const char* const view : {"q_view", "k_view", "v_view"}) add(text, op.attributes.integers(view));
          for (const char* const number : {"is_causal", "heads_inside", "q_num_heads", "kv_num_heads"})
            add(text, {op.attributes.integer(number, 0)});
          for (const char* const factor : {"scale", "softcap"}) text += std::to_string(op.attributes.number(factor, 0)) + " ";
        }
      },
      desc.op);
  return text;
}

std::unique_ptr<Kernel> prepare_fastest(const std::vector<KernelRow>& rows, Tactics& tactics, const OpDesc& desc, PrepareContext& context,
                                        std::string& why) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  size_t accepted = 0, chosen = 0;
  for (const KernelRow& row : rows) {
    std::string reason;
    kernels.push_back(row.prepare(desc, context, reason));
    if (!kernels.back()) {
      why += (why.empty() ? "" : "; ") + row.name + ": " + reason;
      continue;
    }
    if (accepted++ == 0) chosen = kernels.size() - 1;
  }
  if (accepted == 0) return nullptr;
  if (accepted > 1) {
    std::optional<Operands> operands;
    const int way = tactics.choose(key_of(rows, desc, context.tf32), static_cast<int>(rows.size()), [&](int i) -> std::optional<double> {
      const auto& kernel = kernels[static_cast<size_t>(i)];
      if (!kernel || kernel->packed_inputs() != 0) return std::nullopt;
      if (!operands) operands.emplace(desc);
      return operands->time(*kernel);
    });
    if (way >= 0 && kernels[static_cast<size_t>(way)]) chosen = static_cast<size_t>(way);
  }
  return std::make_unique<Chosen>(std::move(kernels[chosen]), rows[chosen].name);
}

}  // namespace

KernelRow fastest_of(const std::vector<KernelRow>& rows, std::shared_ptr<Tactics> tactics) {
  std::string name;
  for (const KernelRow& row : rows) name += (name.empty() ? "" : " or ") + row.name;
  return {name,
          [rows, tactics = std::move(tactics)](const OpDesc& desc, PrepareContext& context, std::string& why) {
            return prepare_fastest(rows, *tactics, desc, context, why);
          },
          rows};
}

}  // namespace serin::kernels::cuda
