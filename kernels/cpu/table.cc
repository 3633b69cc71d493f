// table.cc: chooses the kernel that runs an operator on the CPU. For each kind the rows are tried from left to right. The first that
// accepts runs it, and the last accepts every operator that can be computed at all. `serin inspect --explain` prints which rows refused and
// why.

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/generic.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/onednn_loader.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/simd/blocked.h"
#include "kernels/cpu/simd/dense_bf16.h"
#include "kernels/make_kernel.h"
#include "kernels/ref/ref.h"

namespace serin::kernels {

namespace {

using Rows = std::vector<KernelRow>;
using RefFn = std::unique_ptr<Kernel> (*)(const OpDesc&, PrepareContext&, std::string& why);
using SimdFn = std::unique_ptr<Kernel> (*)(const cpu::Simd&, const OpDesc&, PrepareContext&, std::string& why);

const cpu::Simd& simd_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return cpu::kSimdAvx512;
  if (isa == Isa::kAvx2) return cpu::kSimdAvx2;
#endif
  return cpu::kSimdPortable;
}

/// The loops over bytes have an instruction set of their own.
KernelRow quantised_row(Isa isa) {
  const cpu::Quant* quant = &cpu::kQuantPortable;
  std::string name = "quant_scalar";
#if defined(__x86_64__)
  const bool vnni = isa == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni");
  if (isa != Isa::kScalar) quant = vnni ? &cpu::kQuantAvx512Vnni : &cpu::kQuantAvx2;
  if (isa != Isa::kScalar) name = vnni ? "quant_avx512_vnni" : "quant_avx2";
#endif
  return {name,
          [quant](const OpDesc& desc, PrepareContext& context, std::string& why) { return cpu::quantised(*quant, desc, context, why); }};
}

KernelRow ref_row(RefFn prepare) { return {"ref", prepare}; }

/// Rows compiled for each instruction set.
struct VectorRows {
  Isa isa;
  KernelRow operator()(std::string_view name, SimdFn prepare) const {
    const cpu::Simd& simd = simd_for(isa);
    return {std::string(name) + "_" + std::string(isa_name(isa)),
            [&simd, prepare](const OpDesc& desc, PrepareContext& context, std::string& why) { return prepare(simd, desc, context, why); }};
  }
};

/// `faster` than the library for some shapes, then the library, then what takes the rest. Without a library the rest takes all.
Rows around(Rows faster, const Rows& library, const Rows& rest) {
  if (library.empty()) return rest;
  faster.insert(faster.end(), library.begin(), library.end());
  faster.insert(faster.end(), rest.begin(), rest.end());
  return faster;
}

Rows conv_rows(const VectorRows& simd, const Rows& onednn) {
  Rows rows = around({simd("conv_f32_columns", cpu::conv_small)}, onednn, {simd("conv_f32_columns", cpu::conv), ref_row(ref::conv)});
  rows.insert(rows.begin(), {simd("conv_f32_blocked", cpu::conv_blocked), simd("conv_f32_depthwise", cpu::conv_depthwise)});
  return rows;
}

/// In the order of kernels::Op. Concat and Gather are loops over memcpy already in their reference form.
KernelTable cpu_table(Isa isa, const onednn::Plugin& onednn) {
  const VectorRows simd{isa};
  return {
      Rows{simd("unary_f32", cpu::unary), simd("unary_16bit", cpu::unary_half), simd("unary_plain", cpu::unary_plain),
           ref_row(ref::unary)},  // Unary
      Rows{simd("scale_f32_blocked", cpu::scale_blocked), simd("binary_f32", cpu::binary), simd("binary_16bit", cpu::binary_half),
           simd("binary_plain", cpu::binary_plain), ref_row(ref::binary)},  // Binary
      Rows{simd("select", cpu::select), ref_row(ref::select)},              // Select
      Rows{simd("cast", cpu::cast), ref_row(ref::cast)},                    // Cast
      conv_rows(simd, onednn.conv),                                         // Conv
      around({simd("matmul_f32_panels", cpu::matmul_fast)}, onednn.matmul,
             {simd("matmul_f32_panels", cpu::matmul), simd("matmul_plain", cpu::matmul_plain), ref_row(ref::matmul)}),  // MatMul
      Rows{simd("pool_f32_blocked", cpu::pool_blocked), simd("pool_f32", cpu::pool), simd("pool_f32_volume", cpu::pool_volume),
           simd("max_pool_bytes", cpu::max_pool_bytes), ref_row(ref::pool)},  // Pool
      Rows{simd("mean_f32_blocked", cpu::mean_blocked), simd("reduce_f32", cpu::reduce), simd("reduce_integers", cpu::reduce_integers),
           ref_row(ref::reduce)},                                               // Reduce
      Rows{simd("softmax_f32", cpu::softmax), ref_row(ref::softmax)},           // Softmax
      Rows{simd("layer_norm_f32", cpu::layer_norm), ref_row(ref::layer_norm)},  // LayerNorm
      Rows{simd("batch_norm_f32_blocked", cpu::batch_norm_blocked), simd("batch_norm_f32", cpu::batch_norm),
           ref_row(ref::batch_norm)},                                             // BatchNorm
      Rows{simd("strided_copy", cpu::strided_copy), ref_row(ref::strided_copy)},  // StridedCopy
      Rows{ref_row(ref::concat)},                                                 // Concat
      Rows{simd("pad", cpu::pad), ref_row(ref::pad)},                             // Pad
      Rows{ref_row(ref::gather)},                                                 // Gather
      Rows{simd("arg_max_f32", cpu::arg_max), ref_row(ref::arg_max)},             // ArgMax
      Rows{ref_row(ref::non_zero)},                                               // NonZero
      Rows{simd("cum_sum", cpu::cum_sum), ref_row(ref::cum_sum)},                 // CumSum
      Rows{quantised_row(isa), simd("matmul_nbits_f32", cpu::matmul_nbits), simd("attention_f32", cpu::attention),
           simd("recurrent_f32", cpu::recurrent), simd("norms_f32", cpu::norms), simd("prelu_f32", cpu::prelu),
           simd("top_k_f32", cpu::top_k), simd("gather_elements", cpu::gather_elements), simd("hardmax_f32", cpu::hardmax),
           simd("max_pool_indices_f32", cpu::max_pool_indices), simd("log_sum_exp_f32", cpu::log_sum_exp), simd("resize_f32", cpu::resize),
           simd("conv_transpose_f32", cpu::conv_transpose), simd("conv_transpose_volume_f32", cpu::conv_transpose_volume),
           simd("grid_sample_f32", cpu::grid_sample), simd("deform_conv_f32", cpu::deform_conv), simd("col2im", cpu::col2im),
           simd("center_crop_pad", cpu::center_crop_pad), ref_row(ref::generic)},           // Generic
      Rows{simd("channel_blocks_f32", cpu::channel_blocks), ref_row(ref::channel_blocks)},  // ChannelBlocks
      Rows{simd("pointwise_f32", cpu::pointwise), ref_row(ref::pointwise)},                 // Pointwise
      Rows{ref_row(ref::transfer)},                                                         // Transfer
  };
}

/// Tensors with channels last are made for devices (runtime/engine/layout/channels_last.h); here only the reference reads them.
void leave_channels_last_to_ref(KernelTable& table) {
  const auto guard = [&table](const auto& kind) {
    using Kind = std::decay_t<decltype(kind)>;
    Rows& rows = table[Op(kind).index()];
    for (auto row = rows.begin(); row + 1 < rows.end(); ++row) {
      row->prepare = [prepare = row->prepare](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
        if (std::get<Kind>(desc.op).channels_last) return refuse(why, "channels last");
        return prepare(desc, context, why);
      };
    }
  };
  guard(Conv{});
  guard(Pool{});
}

/// The last row of each kind alone.
KernelTable reference_table() {
  KernelTable table = cpu_table(Isa::kScalar, {});
  for (Rows& rows : table) rows.erase(rows.begin(), rows.end() - 1);
  return table;
}

}  // namespace

bool multiplies_bf16() { return cpu::bf16_loops() != nullptr; }

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, std::string* note) {
  if (options.reference_only) {
    if (note) *note = "cpu ref";
    return std::make_unique<Backend>("cpu ref", reference_table(), 0, ref::knows_generic);
  }
  const std::string name = "cpu " + std::string(isa_name(options.isa));
  const onednn::Loaded loaded = onednn::load(options, simd_for(options.isa));
  if (note) *note = name + ", " + loaded.note;
  KernelTable table = cpu_table(options.isa, loaded.plugin);
  if (options.bf16) {
    const auto prefer = [&](const Op& kind, std::string_view row, SimdFn prepare) {
      Rows& rows = table[kind.index()];
      rows.insert(rows.begin(), VectorRows{options.isa}(row, prepare));
    };
    prefer(MatMul{}, "matmul_bf16", cpu::matmul_bf16);
    prefer(Conv{}, "conv_bf16_blocked", cpu::conv_blocked_bf16);
    prefer(Generic{}, "attention_bf16", cpu::attention_bf16);
  }
  leave_channels_last_to_ref(table);
  return std::make_unique<Backend>(name, std::move(table), simd_for(options.isa).blocked->width, ref::knows_generic);
}

}  // namespace serin::kernels
