// quant_matmul.cc: products of quantised matrices. Sums are held in 32 bits and wrap, as ONNX allows; only QLinearMatMul rounds, once, at the end.
//
// Scales and zero points are one number, or one for each row of a and each column of b: a vector, or a tensor of a's rank with 1 in its last place
// (of b's rank, in its last but one).

#include "kernels/indexing.h"
#include "kernels/ref/quant.h"

namespace serin::kernels::ref {

namespace {

/// The smallest [batch..., rows, columns] view of an operand of any rank: vectors are a row on the left, a column on the right.
Shape as_matrix(const Shape& shape, bool left) {
  if (shape.rank() >= 2) return shape;
  const int64_t size = shape.rank() == 1 ? shape[0] : 1;
  return left ? Shape{1, size} : Shape{size, 1};
}

/// Strides of a parameter seen with [batch..., rows, columns] of y; false where it does not fit.
bool parameter_strides(const TensorView* parameter, bool left, const Shape& y, Strides& strides) {
  strides = {};
  if (!parameter || parameter->elements() == 1) return true;
  Shape shape = parameter->shape;
  if (shape.rank() == 1) shape = left ? Shape{shape[0], 1} : Shape{1, shape[0]};
  if (!broadcasts_to(shape, y)) return false;
  strides = broadcast_strides(shape, y);
  return true;
}

struct Operand {
  const TensorView& values;
  const TensorView* scale;
  const TensorView* zero_point;
};

/// Where the operands of one element of the result are.
struct At {
  int64_t a_scale, b_scale;
};

/// Calls store(i, sum, at) for each element i of y with the integer product.
template <class F>
Fault multiply(const Operand& a, const Operand& b, const TensorView& result, F&& store) {
  const Shape left = as_matrix(a.values.shape, true), right = as_matrix(b.values.shape, false);
  Shape y = result.shape;  // with the axes of vectors
  if (a.values.shape.rank() == 1 || b.values.shape.rank() == 1) {
    const Shape& longer = left.rank() > right.rank() ? left : right;
    y = longer;
    y[y.rank() - 2] = left[left.rank() - 2];
    y[y.rank() - 1] = right[right.rank() - 1];
  }
  const int64_t k = left[left.rank() - 1];
  if (right[right.rank() - 2] != k || y.elements() != result.elements()) return Fault("the operands' shapes do not fit each other");

  Shape left_rows = left, right_columns = right;  // one element for each dot product
  left_rows[left.rank() - 1] = 1;
  right_columns[right.rank() - 2] = 1;
  Strides left_strides = broadcast_strides(left_rows, y), right_strides = broadcast_strides(right_columns, y);
  std::array<Strides, 6> strides{left_strides, right_strides};
  const std::array<std::pair<const TensorView*, bool>, 4> parameters{
      {{a.zero_point, true}, {b.zero_point, false}, {a.scale, true}, {b.scale, false}}};
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (!parameter_strides(parameters[p].first, parameters[p].second, y, strides[p + 2]))
      return "a scale or zero point of shape " + parameters[p].first->shape.str() + " does not fit the product";
  }

  const int64_t columns = right[right.rank() - 1];
  for_each<6>(y, strides, [&](int64_t i, const auto& at) {
    const int32_t a_zero = a.zero_point ? byte_of(*a.zero_point, at[2]) : 0;
    const int32_t b_zero = b.zero_point ? byte_of(*b.zero_point, at[3]) : 0;
    const int64_t row = at[0] * k;
    const int64_t column = at[1] / columns * k * columns + at[1] % columns;
    uint32_t sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      const int32_t term = (byte_of(a.values, row + p) - a_zero) * (byte_of(b.values, column + p * columns) - b_zero);
      sum += static_cast<uint32_t>(term);
    }
    store(i, static_cast<int32_t>(sum), At{at[4], at[5]});
  });
  return kOk;
}

}  // namespace

namespace {

bool are_scales(const GenericDesc& desc, std::initializer_list<size_t> operands, std::string& why) {
  for (const size_t i : operands) {
    const bool fits =
        desc.has(i) &&
        (desc.inputs[i].dtype == DType::kFloat32 || desc.inputs[i].dtype == DType::kFloat16 || desc.inputs[i].dtype == DType::kBFloat16) &&
        desc.inputs[i].shape.elements() > 0;
    if (!fits) why = "operand " + std::to_string(i) + " is not a scale";
  }
  return why.empty();
}

}  // namespace

Prepared matmul_integer(const GenericDesc& desc, std::string& why) {
  if (!desc.has(0) || !desc.has(1)) return refuse(why, "expects two matrices");
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    if (desc.has(i) && !is_byte(desc.inputs[i].dtype)) return refuse_dtype(why, desc.inputs[i].dtype);
  }
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    return multiply({in[0], nullptr, operand(in, 2)}, {in[1], nullptr, operand(in, 3)}, out[0],
                    [&](int64_t i, int32_t sum, const At&) { out[0].as<int32_t>()[i] = sum; });
  });
}

Prepared qlinear_matmul(const GenericDesc& desc, std::string& why) {
  for (const size_t i : {0, 2, 3, 5, 7}) {
    if (!desc.has(i)) return refuse(why, "operand " + std::to_string(i) + " is missing");
    if (!is_byte(desc.inputs[i].dtype)) return refuse_dtype(why, desc.inputs[i].dtype);
  }
  if (!are_scales(desc, {1, 4, 6}, why)) return nullptr;
  const auto range = quantized_range(desc.outputs[0].dtype);
  if (!range) return refuse_dtype(why, desc.outputs[0].dtype);
  return make_kernel([range = *range](Stream&, Inputs in, Outputs out) -> Fault {
    const Elements a_scale(in[1]), b_scale(in[4]);
    const auto y_scale = static_cast<float>(Elements(in[6])[0]);
    const double y_zero = Elements(in[7])[0];
    return multiply({in[0], &in[1], &in[2]}, {in[3], &in[4], &in[5]}, out[0], [&](int64_t i, int32_t sum, const At& at) {
      const float factor = static_cast<float>(a_scale[at.a_scale]) * static_cast<float>(b_scale[at.b_scale]) / y_scale;
      store_integer(out[0], i, quantized(static_cast<float>(sum) * factor, y_zero, range));
    });
  });
}

/// a, b with scale and zero point each, bias (i32, of the product's scale), y scale and zero point; without those y is f32.
Prepared quantized_matmul(const GenericDesc& desc, std::string& why) {
  for (const size_t i : {0, 2, 3}) {
    if (!desc.has(i)) return refuse(why, "operand " + std::to_string(i) + " is missing");
    if (!is_byte(desc.inputs[i].dtype)) return refuse_dtype(why, desc.inputs[i].dtype);
  }
  if (!are_scales(desc, {1, 4}, why)) return nullptr;
  const bool real = desc.outputs[0].dtype == DType::kFloat32;
  if (!real && !are_scales(desc, {7}, why)) return nullptr;
  if (!real && (!quantized_range(desc.outputs[0].dtype) || !desc.has(7))) return refuse_dtype(why, desc.outputs[0].dtype);
  const bool relu = desc.attributes.text("activation", "") == "Relu";
  return make_kernel([real, relu](Stream&, Inputs in, Outputs out) -> Fault {
    const Elements a_scale(in[1]), b_scale(in[4]);
    Quantiser to;
    if (!real) to = Quantiser::of(out[0].dtype, in[7], operand(in, 8));
    if (relu) to.relu();
    const OptionalElements bias(operand(in, 6));
    const int64_t columns = in[3].shape.back();
    return multiply({in[0], &in[1], &in[2]}, {in[3], &in[4], operand(in, 5)}, out[0], [&](int64_t i, int32_t sum, const At& at) {
      const auto total = static_cast<float>(static_cast<double>(sum) + bias[i % columns]);
      const float scale = static_cast<float>(a_scale[at.a_scale]) * static_cast<float>(b_scale[at.b_scale]);
      if (real)
        out[0].as<float>()[i] = relu && total * scale < 0 ? 0.f : total * scale;
      else
        store_integer(out[0], i, quantized(total * (scale / to.scale), to.zero, to.range));
    });
  });
}

/// a f32, b with scale and zero point, bias f32: a, or each row of a, is quantised as DynamicQuantizeLinear does.
Prepared dynamic_quantize_matmul(const GenericDesc& desc, std::string& why) {
  if (!desc.has(0) || !desc.has(1) || !desc.has(2)) return refuse(why, "expects two matrices and a scale");
  if (desc.inputs[0].dtype != DType::kFloat32 || desc.outputs[0].dtype != DType::kFloat32) return refuse_dtype(why, desc.inputs[0].dtype);
  if (!is_byte(desc.inputs[1].dtype)) return refuse_dtype(why, desc.inputs[1].dtype);
  if (!are_scales(desc, {2}, why)) return nullptr;
  const bool relu = desc.attributes.text("activation", "") == "Relu";
  const bool by_row = desc.attributes.integer("by_row", 0) != 0;
  if (by_row && desc.inputs[1].shape.rank() != 2) return refuse(why, "rows of a are quantised for one matrix b only");
  return make_kernel([relu, by_row](Stream&, Inputs in, Outputs out) -> Fault {
    const int64_t columns = in[1].shape.back(), k = in[0].shape.back();
    const Elements b_scale(in[2]);
    const OptionalElements bias(operand(in, 4));
    std::vector<uint8_t> bytes(static_cast<size_t>(in[0].elements()));
    const auto rows_from = [&](const TensorView& x, const TensorView& y) {
      const auto [a_scale, a_zero] = dynamically_quantised(x.span<const float>(), bytes.data());
      uint8_t zero = a_zero;
      const TensorView a{DType::kUInt8, x.shape, bytes.data()}, a_zero_point{DType::kUInt8, {}, &zero};
      return multiply({a, nullptr, &a_zero_point}, {in[1], &in[2], operand(in, 3)}, y,
                      [&, scale = a_scale](int64_t i, int32_t sum, const At& at) {
                        float each = static_cast<float>(sum) * (scale * static_cast<float>(b_scale[at.b_scale]));
                        each += static_cast<float>(bias[i % columns]);
                        y.as<float>()[i] = relu && each < 0 ? 0.f : each;
                      });
    };
    if (!by_row) return rows_from(in[0], out[0]);
    for (int64_t r = 0; k > 0 && r < in[0].elements() / k; ++r) {
      const TensorView x{DType::kFloat32, Shape{1, k}, in[0].as<float>() + r * k},
          y{DType::kFloat32, Shape{1, columns}, out[0].as<float>() + r * columns};
      if (Fault fault = rows_from(x, y)) return fault;
    }
    return kOk;
  });
}

/// com.microsoft MatMulNBits: b is [n, blocks, block bytes], `bits` to an element, each block of `block_size` along k with its scale and zero point;
/// y = a * dequantised(b) transposed.
Prepared matmul_nbits(const GenericDesc& desc, std::string& why) {
  const int64_t k = desc.attributes.integer("K", 0), n = desc.attributes.integer("N", 0);
  const int64_t bits = desc.attributes.integer("bits", 4), block = desc.attributes.integer("block_size", 0);
  if (k < 1 || n < 1 || block < 1 || (bits != 2 && bits != 4 && bits != 8)) return refuse(why, "K, N, bits or block_size is out of range");
  const DType dtype = desc.inputs[0].dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) return refuse_dtype(why, dtype);
  const int64_t blocks = (k + block - 1) / block, block_bytes = (block * bits + 7) / 8, zero_bytes = (blocks * bits + 7) / 8;
  const auto holds = [&](size_t i, int64_t wanted) { return !desc.has(i) || desc.inputs[i].shape.elements() >= wanted; };
  const bool packed_zeros = desc.has(3) && desc.inputs[3].dtype == DType::kUInt8;
  if (!desc.has(1) || !desc.has(2) || desc.inputs[1].dtype != DType::kUInt8 || !holds(1, n * blocks * block_bytes) ||
      !holds(2, n * blocks) || !holds(3, packed_zeros ? n * zero_bytes : n * blocks) || !holds(4, k) || !holds(5, n) ||
      desc.inputs[0].shape.rank() < 1)
    return refuse(why, "an operand is smaller than K, N and block_size say");
  if (desc.has(4) && desc.inputs[4].dtype != DType::kInt32) return refuse_dtype(why, desc.inputs[4].dtype);

  return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
    const Elements a(in[0]), scale(in[2]);
    const TensorView* zeros = operand(in, 3);
    const TensorView* group = operand(in, 4);
    const OptionalElements bias(operand(in, 5));
    const auto unpack = [bits](const uint8_t* bytes, int64_t i) {
      const int64_t per_byte = 8 / bits;
      return static_cast<double>(bytes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1));
    };
    const int64_t rows = in[0].shape.back() == k ? in[0].elements() / k : -1;
    if (rows < 0) return Fault("a has rows of " + std::to_string(in[0].shape.back()) + " elements, K is " + std::to_string(k));
    const auto* packed = in[1].as<const uint8_t>();
    std::vector<float> column(static_cast<size_t>(k));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        const int64_t at = group ? group->as<const int32_t>()[p] : p / block;
        if (at < 0 || at >= blocks) return Fault("g_idx names block " + std::to_string(at) + " of " + std::to_string(blocks));
        double zero = static_cast<double>(int64_t{1} << (bits - 1));
        if (zeros) zero = packed_zeros ? unpack(zeros->as<const uint8_t>() + j * zero_bytes, at) : Elements(*zeros)[j * blocks + at];
        const double q = unpack(packed + (j * blocks + p / block) * block_bytes, p % block);
        column[static_cast<size_t>(p)] = static_cast<float>((q - zero) * scale[j * blocks + at]);
      }
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * column[static_cast<size_t>(p)];
        const auto y = static_cast<float>(sum + (operand(in, 5) ? bias[j] : 0.0));
        if (out[0].dtype == DType::kFloat32)
          out[0].as<float>()[i * n + j] = y;
        else if (out[0].dtype == DType::kFloat16)
          out[0].as<Half>()[i * n + j] = to_half(y);
        else
          out[0].as<BFloat16>()[i * n + j] = to_bfloat16(y);
      }
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
