// cpu.h: The vector kernels, which precede the reference kernels in the table (table.cc).
//
// All compute in f32 and refuse the cases in which they are slow.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

using Prepared = std::unique_ptr<Kernel>;

Prepared unary(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared binary(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pointwise(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared cast(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared conv(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// One channel and one filter in each group.
Prepared conv_depthwise(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// On channel blocks (kernels::ChannelBlocks): convolution, pooling, the mean of images, a factor for each channel, conversion from and to
/// plain.
Prepared conv_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared conv_blocked_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pool_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared mean_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared batch_norm_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared scale_blocked(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared channel_blocks(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared matmul(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// By a constant b, operands rounded to bf16.
Prepared matmul_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// The same two, but only for the shapes for which they are faster than oneDNN.
Prepared conv_small(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared matmul_fast(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Generic: Attention; RNN, GRU or LSTM.
Prepared attention(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared attention_bf16(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared recurrent(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pool(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared reduce(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared softmax(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared layer_norm(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared batch_norm(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);
/// Any dtype; memcpy and blocked transposes, no vector code.
Prepared strided_copy(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why);

/// Every input is f32 and, unless `any_output`, so is the output.
bool is_f32(const OpDesc& desc, std::string& why, bool any_output = false);
bool is_bounded(const OpDesc& desc);
/// The bounds, if the whole epilogue is a clamp (or nothing); without a bias.
std::optional<RowFinish> clamp_of(const Epilogue& epilogue);

using PackedBuffer = std::shared_ptr<const PackedWeights::Buffer>;
inline const float* floats(const PackedBuffer& buffer) { return buffer ? reinterpret_cast<const float*>(buffer->data) : nullptr; }

/// A constant packed once for the model under `layout`, `count` floats.
template <class Pack>
PackedBuffer packed_floats(PrepareContext& context, const TensorDesc& constant, const std::string& layout, int64_t count, Pack&& pack) {
  return context.weights->get(constant.constant_id, layout, static_cast<size_t>(count) * sizeof(float),
                              [&](std::byte* data) { pack(constant.constant.as<float>(), reinterpret_cast<float*>(data)); });
}

}  // namespace serin::kernels::cpu
