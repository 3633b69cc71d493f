// quant_matmul.cu: MatMulInteger, QLinearMatMul, QuantizedMatMul and DynamicQuantizeMatMul: one product of bytes (byte_tiles.h), four things that follow it.

#include "kernels/cuda/byte_tiles.h"
#include "kernels/cuda/dynamic_scale.h"
#include "kernels/cuda/rows.h"
#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

/// Rows of a matrix. `flip`: what turns its bytes into signed ones.
struct MatrixRows {
  struct Place {
    const uint8_t* row;
  };
  const uint8_t* data;
  int64_t k, rows_of_product;
  uint32_t flip;
  bool aligned;  ///< rows are whole chunks

  __device__ Place place(int64_t product, int64_t row) const { return {data + (product * rows_of_product + row) * k}; }
  __device__ ByteChunk chunk(const Place& place, int64_t at) const {
    ByteChunk chunk;
    if (aligned) {
      chunk = *reinterpret_cast<const ByteChunk*>(place.row + at);
      for (uint32_t& word : chunk.words) word ^= flip;
      return chunk;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (at + i < k) chunk.words[i / 4] |= ((place.row[at + i] ^ (flip & 0x80u)) & 0xFFu) << (i % 4 * 8);
    }
    return chunk;
  }
};

/// a [..., m, k] times b [k, n], or times as many matrices as a has. Vectors are a row on the left, a column on the right.
struct Plan {
  size_t a, b;  ///< the operands
  ByteProduct product;
  ByteLayout layout;
  std::shared_ptr<const PackedWeights::Buffer> packed;  ///< null: b is packed in every run

  /// Last, when nothing refuses the operator any more.
  void pack(const OpDesc& desc, PrepareContext& context) {
    if (desc.inputs[b].constant && product.products == 1) packed = pack_bytes(desc.inputs[b], layout, context);
  }
  KernelTraits traits(size_t more_scratch = 0) const {
    const size_t own = packed ? 0 : static_cast<size_t>(product.products) * layout.bytes();
    return {.scratch_bytes = own + more_scratch, .packed_inputs = packed ? 1u << b : 0};
  }
};

Shape as_matrix(const Shape& shape, bool left) {
  if (shape.rank() >= 2) return shape;
  const int64_t size = shape.rank() == 1 ? shape[0] : 1;
  return left ? Shape{1, size} : Shape{size, 1};
}

/// A parameter is one number, or one for each row of a (column of b) of a product that is one matrix.
bool fits(const OpDesc& desc, size_t i, int64_t lines, bool one_matrix) {
  if (!has_operand(desc, i)) return true;
  const int64_t elements = desc.inputs[i].shape.elements();
  return elements == 1 || (elements == lines && one_matrix);
}

std::optional<Plan> plan_of(const OpDesc& desc, size_t a, size_t b, size_t b_zero, std::string& why) {
  if (!has_operand(desc, a) || !has_operand(desc, b)) return why = "expects two matrices", std::nullopt;
  if (!is_byte(desc.inputs[b].dtype)) return why = "b is not bytes", std::nullopt;
  const Shape left = as_matrix(desc.inputs[a].shape, true), right = as_matrix(desc.inputs[b].shape, false);
  const int64_t k = left.back(), n = right.back(), right_matrices = product(right, 0, right.rank() - 2);
  if (right[right.rank() - 2] != k || k > (int64_t{1} << 30)) return why = "the operands' shapes do not fit each other", std::nullopt;
  Plan plan{.a = a, .b = b, .product = {}, .layout = {n, 1, k, 1, 0, n}, .packed = nullptr};
  ByteProduct& p = plan.product;
  if (right_matrices == 1 && right.rank() <= left.rank()) {
    p.rows = product(left, 0, left.rank() - 1);
  } else {
    if (left.rank() != right.rank() || !std::equal(left.begin(), left.end() - 2, right.begin()))
      return why = "matrices are broadcast", std::nullopt;
    p.rows = left[left.rank() - 2], p.products = right_matrices;
    p.b_step = static_cast<int64_t>(plan.layout.bytes());
  }
  p.columns = n, p.k = k, p.k_padded = plan.layout.k_padded();
  p.a_signed = desc.inputs[a].dtype == DType::kInt8, p.b_signed = desc.inputs[b].dtype == DType::kInt8;
  p.wants_row_sums = !is_symmetric(desc, b, b_zero);
  p.plane = Division(std::max<int64_t>(p.rows, 1), p.rows + 1);
  p.row_step = n, p.product_step = p.rows * n;
  return plan;
}

/// `a`: of bytes, from the operand or made of it. `scratch`: for b, where it is not packed.
Fault run(const Stream& stream, const Plan& plan, const uint8_t* a, ByteProduct product, const ByteFinish& finish, const TensorView& b,
          std::byte* scratch, void* y) {
  if (plan.packed) {
    product.b = reinterpret_cast<const uint8_t*>(plan.packed->data);
  } else {
    auto* const packed = reinterpret_cast<uint8_t*>(scratch);
    if (Fault fault = pack_bytes(stream, plan.layout, product.products, product.k * product.columns, b, packed)) return fault;
    product.b = packed;
  }
  const bool aligned = product.k % kByteGroup == 0 && reinterpret_cast<uintptr_t>(a) % sizeof(ByteChunk) == 0;
  const MatrixRows rows{a, product.k, product.rows, product.a_signed ? 0 : kFlipBytes, aligned};
  return multiply_byte_tiles(stream, product, rows, finish, y);
}

/// What the products with a scale for each operand share: their operands are a, its scale and zero point, b, its scale and zero point.
bool has_scales(const OpDesc& desc, const Plan& plan, std::string& why) {
  const bool one_matrix = plan.product.products == 1;
  if (!is_scale(desc, 1) || !is_scale(desc, 4))
    why = "scales are not f32";
  else if (!fits(desc, 1, plan.product.rows, one_matrix) || !fits(desc, 2, plan.product.rows, one_matrix) ||
           !fits(desc, 4, plan.product.columns, one_matrix) || !fits(desc, 5, plan.product.columns, one_matrix))
    why = "a scale or zero point is broadcast";
  return why.empty();
}

void set_scales(Inputs in, ByteProduct& product, ByteFinish& finish) {
  product.a_zero = zero_points(in, 2, 1), product.b_zero = zero_points(in, 5, 1);
  finish.a_scale = in[1].as<const float>(), finish.b_scale = in[4].as<const float>();
  finish.a_scale_step = in[1].elements() == 1 ? 0 : 1, finish.b_scale_step = in[4].elements() == 1 ? 0 : 1;
}

}  // namespace

Prepared prepare_matmul_integer(const OpDesc& desc, PrepareContext& context, std::string& why) {
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != DType::kUndefined && !is_byte(input.dtype)) return refuse(why, "operands are not bytes");
  }
  auto plan = plan_of(desc, 0, 1, 3, why);
  if (!plan) return nullptr;
  const bool one_matrix = plan->product.products == 1;
  if (!fits(desc, 2, plan->product.rows, one_matrix) || !fits(desc, 3, plan->product.columns, one_matrix))
    return refuse(why, "a zero point is broadcast");
  plan->pack(desc, context);
  return make_kernel(
      [plan = *plan](Stream& stream, Inputs in, Outputs out) -> Fault {
        ByteProduct product = plan.product;
        product.a_zero = zero_points(in, 2, 1), product.b_zero = zero_points(in, 3, 1);
        return run(stream, plan, in[0].as<const uint8_t>(), product, {}, in[1], stream.scratch, out[0].data);
      },
      plan->traits());
}

/// a, b with scale and zero point each, then QLinearMatMul: y's scale and zero point; QuantizedMatMul: bias, y's scale and zero point, or a real y.
Prepared prepare_quantised_matmul(const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  const bool real = desc.outputs[0].dtype == DType::kFloat32;
  const size_t bias = op.name == "QuantizedMatMul" ? 6 : SIZE_MAX, to = bias == SIZE_MAX ? 6 : 7;
  if (!has_operand(desc, 0) || !is_byte(desc.inputs[0].dtype)) return refuse(why, "a is not bytes");
  if (!real && (!is_byte(desc.outputs[0].dtype) || !is_scale(desc, to) || !is_number(desc, to)))
    return refuse(why, "the result is not bytes with one scale");
  if (has_operand(desc, bias) && desc.inputs[bias].dtype != DType::kInt32) return refuse(why, "the bias is not i32");
  auto plan = plan_of(desc, 0, 3, 5, why);
  if (!plan || !has_scales(desc, *plan, why)) return nullptr;
  plan->pack(desc, context);
  const bool relu = op.attributes.text("activation", "") == "Relu";
  return make_kernel(
      [plan = *plan, real, relu, bias, to](Stream& stream, Inputs in, Outputs out) -> Fault {
        ByteProduct product = plan.product;
        ByteFinish finish;
        finish.kind = real ? ByteFinish::Kind::kReal : ByteFinish::Kind::kBytes, finish.relu = relu;
        set_scales(in, product, finish);
        finish.bias = operand_as<int32_t>(in, bias);
        if (!real) finish.to = target_of(in, to, out[0].dtype, relu);
        return run(stream, plan, in[0].as<const uint8_t>(), product, finish, in[3], stream.scratch, out[0].data);
      },
      plan->traits());
}

/// a f32, b with scale and zero point, bias f32: a is quantised as DynamicQuantizeLinear does.
Prepared prepare_dynamic_quantise_matmul(const OpDesc& desc, PrepareContext& context, std::string& why) {
  if (desc.inputs[0].dtype != DType::kFloat32 || desc.outputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
  if (std::get<Generic>(desc.op).attributes.integer("by_row", 0) != 0) return refuse(why, "one range for all rows only");
  auto plan = plan_of(desc, 0, 1, 3, why);
  if (!plan) return nullptr;
  const bool one_matrix = plan->product.products == 1;
  if (!is_scale(desc, 2) || !fits(desc, 2, plan->product.columns, one_matrix) || !fits(desc, 3, plan->product.columns, one_matrix))
    return refuse(why, "the scale of b is not f32, or broadcast");
  if (has_operand(desc, 4) && (desc.inputs[4].dtype != DType::kFloat32 || desc.inputs[4].shape.elements() != plan->product.columns))
    return refuse(why, "the bias is not one f32 for each column");
  const bool relu = std::get<Generic>(desc.op).attributes.text("activation", "") == "Relu";
  const int64_t elements = desc.inputs[0].shape.elements();
  const DynamicMemory memory(elements);
  plan->pack(desc, context);
  return make_kernel(
      [plan = *plan, relu, elements, memory](Stream& stream, Inputs in, Outputs out) -> Fault {
        const DynamicMemory::At at = memory.at(stream.scratch);
        if (Fault fault = quantise_dynamically(stream, in[0].as<const float>(), elements, at)) return fault;
        ByteProduct product = plan.product;
        product.a_zero = {at.zero, false, 0}, product.b_zero = zero_points(in, 3, 1);
        ByteFinish finish;
        finish.kind = ByteFinish::Kind::kReal, finish.relu = relu;
        finish.a_scale = at.scale, finish.b_scale = in[2].as<const float>(), finish.b_scale_step = in[2].elements() == 1 ? 0 : 1;
        finish.real_bias = operand_as<float>(in, 4);
        return run(stream, plan, at.bytes, product, finish, in[1], stream.scratch + memory.bytes(), out[0].data);
      },
      plan->traits(memory.bytes()));
}

}  // namespace serin::kernels::cuda
