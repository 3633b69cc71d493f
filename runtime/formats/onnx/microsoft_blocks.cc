// microsoft_blocks.cc: weights of few bits in blocks, for which ONNX has no operator of its own.
//
//   MatMulBnb4             each element is one of sixteen numbers (bitsandbytes' FP4 and NF4) times the largest of its block: read as floats, when it is packed
//   GatherBlockQuantized   rows of a table are gathered with their scales and zero points, and become floats then
//
// Bytes with two elements become a type of four bits, of which the engine keeps one a byte.

#include <fmt/format.h>

#include <array>

#include "kernels/float16.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

using graph::ConstantPtr;
using graph::kNone;
using graph::Op;
using graph::ValueId;

namespace {

constexpr int64_t kMostRows = int64_t{1} << 31;  // and columns: so that products of the two stay small

using Codebook = std::array<float, 16>;
constexpr Codebook kFp4 = {0.F,  5.208333333e-03F,  0.66666667F,  1.F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
                           -0.F, -5.208333333e-03F, -0.66666667F, -1.F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr Codebook kNf4 = {-1.F,
                           -0.6961928009986877F,
                           -0.5250730514526367F,
                           -0.39491748809814453F,
                           -0.28444138169288635F,
                           -0.18477343022823334F,
                           -0.09105003625154495F,
                           0.F,
                           0.07958029955625534F,
                           0.16093020141124725F,
                           0.24611230194568634F,
                           0.33791524171829224F,
                           0.44070982933044434F,
                           0.5626170039176941F,
                           0.7229568362236023F,
                           1.F};

float as_float(float x) { return x; }
float as_float(kernels::Half x) { return kernels::to_float(x); }
float as_float(kernels::BFloat16 x) { return kernels::to_float(x); }
void store(float x, float& to) { to = x; }
void store(float x, kernels::Half& to) { to = kernels::to_half(x); }
void store(float x, kernels::BFloat16& to) { to = kernels::to_bfloat16(x); }

/// The matrix [k, n] of which the file has [n, k], element by element, the first of two in a byte's upper half.
template <class T>
ConstantPtr unpacked_matrix(const ConstantPtr& packed, const ConstantPtr& largest, const Codebook& codebook, int64_t k, int64_t n,
                            int64_t block) {
  return graph::make_constant(largest->dtype, Shape{k, n}, [=, &codebook](std::span<std::byte> memory) -> Status {
    const auto bytes = packed->span<uint8_t>();
    const auto scales = largest->span<T>();
    auto* const to = reinterpret_cast<T*>(memory.data());
    for (int64_t i = 0; i < k * n; ++i) {
      const uint8_t byte = bytes[static_cast<size_t>(i / 2)];
      const float scale = as_float(scales[static_cast<size_t>(i / block)]);
      store(codebook[i % 2 == 0 ? byte >> 4 : byte & 15] * scale, to[i % k * n + i / k]);
    }
    return {};
  });
}

void import_matmul_bnb4(NodeImport& node, Op op) {
  const int64_t k = node.required_integer("K"), n = node.required_integer("N"), block = node.required_integer("block_size"),
                type = node.required_integer("quant_type");
  node.ignore("training_mode");
  if (node.error()) return;
  if (!node.flag("transB", true)) return node.unsupported("transB 0, which is for training");
  const ConstantPtr packed = node.constant(1), largest = node.constant(2);
  if (!packed || !largest) return node.unsupported("its weights are not constants of the file");
  if (k < 1 || n < 1 || k >= kMostRows || n >= kMostRows || block < 1 || (type != 0 && type != 1))
    return node.corrupt(fmt::format("K {}, N {}, block_size {} or quant_type {} is out of range", k, n, block, type));
  const int64_t elements = k * n;
  if (packed->dtype != DType::kUInt8 || packed->elements() != (elements + 1) / 2 || largest->elements() != (elements + block - 1) / block)
    return node.corrupt(fmt::format("has {} bytes and {} scales for a matrix of {} x {} in blocks of {}", packed->elements(),
                                    largest->elements(), n, k, block));
  const Codebook& codebook = type == 0 ? kFp4 : kNf4;
  ConstantPtr weight;
  switch (largest->dtype) {
    case DType::kFloat32: weight = unpacked_matrix<float>(packed, largest, codebook, k, n, block); break;
    case DType::kFloat16: weight = unpacked_matrix<kernels::Half>(packed, largest, codebook, k, n, block); break;
    case DType::kBFloat16: weight = unpacked_matrix<kernels::BFloat16>(packed, largest, codebook, k, n, block); break;
    default: return node.corrupt(fmt::format("its scales are {}", dtype_name(largest->dtype)));
  }
  node.emit(op, {node.input(0), node.step_constant("weight", std::move(weight))});
}

/// Bytes as elements of `bits`, the first in the lower half of a byte; as signed ones around 0 where they stand for numbers around the middle.
ConstantPtr unpacked_bytes(const ConstantPtr& packed, int64_t bits, bool centred) {
  const auto per_byte = static_cast<size_t>(8 / bits);
  const auto middle = static_cast<uint8_t>(centred ? 1U << (bits - 1) : 0U), mask = static_cast<uint8_t>((1U << bits) - 1);
  Shape shape = packed->shape;
  shape[shape.rank() - 1] *= static_cast<int64_t>(per_byte);
  const DType dtype = bits == 8 ? centred ? DType::kInt8 : DType::kUInt8 : centred ? DType::kInt4 : DType::kUInt4;
  return graph::make_constant(dtype, shape, [=](std::span<std::byte> to) -> Status {
    const auto bytes = packed->span<uint8_t>();
    for (size_t i = 0; i < to.size(); ++i) {
      const auto element = static_cast<uint8_t>((bytes[i / per_byte] >> (i % per_byte * static_cast<size_t>(bits)) & mask) ^ middle);
      const bool negative = centred && bits < 8 && (element & (mask / 2 + 1)) != 0;
      to[i] = static_cast<std::byte>(negative ? element | static_cast<uint8_t>(~mask) : element);
    }
    return {};
  });
}

void import_gather_block_quantized(NodeImport& node, Op op) {
  const int64_t block = node.integer("block_size", 128), bits = node.integer("bits", 4);
  int64_t gathered = node.integer("gather_axis", 0), quantised = node.integer("quantize_axis", 1);
  const auto rank = node.inferred_rank(0), added = node.inferred_rank(1);
  if (!rank || !added) return node.unsupported("the rank of its data or of its indices is not known");
  const auto axes = static_cast<int64_t>(*rank);
  if (gathered < 0) gathered += axes;
  if (quantised < 0) quantised += axes;
  if (gathered < 0 || gathered >= axes || quantised < 0 || quantised >= axes || gathered == quantised || block < 1)
    return node.corrupt(
        fmt::format("gather_axis {}, quantize_axis {} or block_size {} does not fit data of {} axes", gathered, quantised, block, axes));
  ValueId data = node.input(0), zeros = node.input(3);
  if (const ConstantPtr bytes = node.constant(0); bytes && bytes->dtype == DType::kUInt8) {
    if (bits != 4 && bits != 8) return node.unsupported(fmt::format("bits {}", bits));
    const ConstantPtr zero_bytes = node.constant(3);
    if (zeros != kNone && (!zero_bytes || zero_bytes->dtype != DType::kUInt8 || zero_bytes->shape.rank() != *rank))
      return node.unsupported("its zero points are not bytes of the file");
    data = node.step_constant("elements", unpacked_bytes(bytes, bits, /*centred=*/zeros == kNone));
    if (zero_bytes) zeros = node.step_constant("zeros", unpacked_bytes(zero_bytes, bits, /*centred=*/false));
  }
  const auto rows = [&](std::string_view name, ValueId table) {
    return table == kNone ? kNone : node.step(Op::kGather, name, {table, node.input(1)}, {{"axis", gathered}});
  };
  const int64_t axis = quantised < gathered ? quantised : quantised + static_cast<int64_t>(*added) - 1;
  node.emit(op, {rows("rows", data), rows("row_scales", node.input(2)), rows("row_zeros", zeros)}, {{"axis", axis}, {"block_size", block}});
}

constexpr OperatorRow kBlockOperators[] = {
    {"GatherBlockQuantized", 1, 3, 4, 1, import_gather_block_quantized, Op::kDequantizeLinear},
    {"MatMulBnb4", 1, 3, 3, 1, import_matmul_bnb4, Op::kMatMul},
};

}  // namespace

OperatorFamily microsoft_block_operators() { return {"com.microsoft", kBlockOperators}; }

}  // namespace serin::formats::onnx
