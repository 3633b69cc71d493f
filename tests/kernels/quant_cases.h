// quant_cases.h: operators on quantised tensors, for whoever computes them: each function calls match(case, tolerance) with many of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/harness.h"

namespace serin::kernels::test::quant {

constexpr DType kU8 = DType::kUInt8, kS8 = DType::kInt8;

inline Tensor absent() { return Tensor(DType::kUndefined, Shape{0}); }
inline Tensor bytes(DType dtype, const Shape& shape, uint32_t seed) {
  return random_integers(dtype, shape, seed, -128, dtype == kU8 ? 255 : 127);
}
inline Tensor number(float x) { return Tensor(Shape{}, std::vector<float>{x}); }
inline Tensor zero(DType dtype, int x) {
  return dtype == kU8 ? Tensor(Shape{}, std::vector<uint8_t>{static_cast<uint8_t>(x)})
                      : Tensor(Shape{}, std::vector<int8_t>{static_cast<int8_t>(x)});
}
inline Tensor scales(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(0.001f * static_cast<float>(1 + i % 7));
  return Tensor(Shape{n}, values);
}
inline int zero_of(DType dtype) { return dtype == kU8 ? 113 : -9; }

struct ConvShape {
  Shape x;  // channels last
  int64_t filters;
  std::vector<int64_t> kernel, strides, pads;
  int64_t group = 1, dilation = 1;
};

/// Zero points of a weight's columns: one for all, or as different as they can be.
inline Tensor zeros_of_weight(DType dtype, int64_t n, bool each) {
  const int numbers[] = {dtype == kU8 ? 0 : -128, dtype == kU8 ? 255 : 127, dtype == kU8 ? 121 : 6};
  if (!each) return zero(dtype, numbers[2]);
  Tensor made(dtype, Shape{n});
  for (int64_t i = 0; i < n; ++i) made.view().as<uint8_t>()[i] = static_cast<uint8_t>(numbers[i % 3]);
  return made;
}

inline Case conv_case(const ConvShape& shape, DType x, DType w, DType y, bool relu) {
  const size_t axes = shape.kernel.size();
  Attributes attributes;
  attributes.set("strides", shape.strides);
  attributes.set("pads", shape.pads);
  attributes.set("dilations", std::vector<int64_t>(axes, shape.dilation));
  attributes.set("group", shape.group);
  attributes.set("channels_last", int64_t{1});
  attributes.set("activation", std::string(relu ? "Relu" : ""));
  Shape weight{shape.filters, shape.x.back() / shape.group}, result{shape.x[0]};
  for (size_t i = 0; i < axes; ++i) {
    weight.push_back(shape.kernel[i]);
    const int64_t extent = (shape.kernel[i] - 1) * shape.dilation + 1;
    result.push_back((shape.x[i + 1] + shape.pads[i] + shape.pads[axes + i] - extent) / shape.strides[i] + 1);
  }
  result.push_back(shape.filters);
  return {.op = Generic{"QLinearConv", attributes},
          .inputs = {bytes(x, shape.x, 1), number(0.02f), zero(x, zero_of(x)), bytes(w, weight, 2), scales(shape.filters),
                     zero(w, w == kU8 ? 128 : 0), number(0.05f), zero(y, zero_of(y)),
                     random_integers(DType::kInt32, {shape.filters}, 3, -5000, 5000)},
          .outputs = {{y, result}},
          .constants = 0x1fe};
}

inline const ConvShape kConvs[] = {
    {{1, 5, 5, 8}, 16, {1, 1}, {1, 1}, {0, 0, 0, 0}},      {{2, 7, 9, 16}, 70, {3, 3}, {1, 1}, {1, 1, 1, 1}},
    {{1, 9, 9, 4}, 17, {3, 3}, {2, 2}, {1, 0, 1, 0}},      {{1, 11, 10, 3}, 64, {7, 7}, {2, 2}, {3, 3, 3, 3}},
    {{1, 6, 6, 5}, 33, {1, 1}, {1, 1}, {0, 0, 0, 0}},      {{1, 8, 8, 12}, 65, {3, 3}, {1, 1}, {2, 2, 2, 2}, 1, 2},
    {{1, 20, 20, 8}, 8, {3, 3}, {1, 1}, {1, 1, 1, 1}, 2},  {{1, 9, 9, 19}, 19, {3, 3}, {1, 1}, {1, 1, 1, 1}, 19},
    {{1, 9, 9, 32}, 32, {5, 5}, {2, 2}, {2, 2, 2, 2}, 32}, {{1, 13, 8}, 48, {3}, {1}, {1, 1}},
    {{1, 25, 25, 64}, 128, {1, 1}, {2, 2}, {0, 0, 0, 0}},
};

template <class F>
void for_convolutions(F&& match) {
  for (const ConvShape& shape : kConvs) {
    for (const DType x : {kU8, kS8}) {
      for (const DType w : {kS8, kU8}) {
        Case c = conv_case(shape, x, w, x, w == kS8);
        match(c, Tolerance{0, 0});
        for (const bool each : {false, true}) {
          c.inputs[5] = zeros_of_weight(w, shape.filters, each);
          match(c, Tolerance{0, 0});
        }
      }
    }
  }
}

template <class F>
void for_convolutions_with_what_follows(F&& match) {
  for (const ConvShape& shape : {kConvs[0], kConvs[1], kConvs[3]}) {
    for (const DType dtype : {kU8, kS8}) {
      for (const bool residual : {true, false}) {
        Case c = conv_case(shape, dtype, kS8, dtype, false);
        const Shape y = c.outputs[0].shape;
        c.inputs.push_back(residual ? bytes(dtype, y, 4) : absent());
        c.inputs.push_back(residual ? number(0.03f) : absent());
        c.inputs.push_back(residual ? zero(dtype, 5) : absent());
        c.inputs.push_back(number(0.07f));
        c.inputs.push_back(zero(dtype, zero_of(dtype)));
        c.constants = residual ? 0x3dfe : 0x31fe;
        match(c, Tolerance{0, 0});
        Attributes& attributes = std::get<Generic>(c.op).attributes;
        attributes.set("sum_activation", std::string("Relu"));
        match(c, Tolerance{0, 0});
        attributes.set("again_scale", 0.045);
        attributes.set("again_zero", int64_t{zero_of(dtype) + 1});
        attributes.set("again_activation", std::string("Relu"));
        match(c, Tolerance{0, 0});
      }
    }
  }
}

/// a of type `a`, b given: to bytes, and to floats.
template <class F>
void match_product(F&& match, int64_t m, DType a, const Tensor& b, const Tensor& b_zero) {
  const int64_t k = b.shape()[0], n = b.shape()[1];
  Case c{.op = Generic{"QuantizedMatMul", {}},
         .inputs = {bytes(a, {m, k}, 1), number(0.02f), zero(a, zero_of(a)), b, scales(n), b_zero,
                    random_integers(DType::kInt32, {n}, 3, -999, 999), number(0.04f), zero(a, zero_of(a))},
         .outputs = {{a, {m, n}}},
         .constants = 0x1fe};
  match(c, Tolerance{0, 0});
  c.inputs.resize(7, absent());
  c.outputs[0].dtype = kF32;
  match(c, Tolerance{1e-6, 1e-6});
}

template <class F>
void for_products(F&& match) {
  for (const DType a : {kU8, kS8}) {
    for (const int64_t m : {1, 5, 6, 7, 200}) {
      for (const int64_t k : {3, 64, 65}) {
        for (const int64_t n : {1, 16, 63, 130}) match_product(match, m, a, bytes(kS8, {k, n}, 2), zero(kS8, 0));
      }
    }
    for (const int64_t m : {1, 200}) {
      for (const DType b : {kS8, kU8}) {
        for (const bool each : {false, true}) match_product(match, m, a, bytes(b, {65, 70}, 2), zeros_of_weight(b, 70, each));
      }
    }
  }
}

/// Weights at the limit of seven bits and just beyond it, times the largest numbers of x: what an instruction that saturates would get wrong.
template <class F>
void for_weights_of_seven_bits(F&& match) {
  for (const int most : {64, 65, 127}) {
    for (const bool extreme : {true, false}) {
      const auto weight = [&](const Shape& shape) {
        Tensor made = random_integers(kS8, shape, 5, -most, most);
        for (int64_t i = 0; extreme && i < shape.elements(); ++i)
          made.view().as<int8_t>()[i] = static_cast<int8_t>(i % 7 == 3 ? -most : most);
        return made;
      };
      const auto largest = [&](Tensor& x) {
        if (extreme) std::fill_n(x.view().as<uint8_t>(), x.shape().elements(), x.dtype() == kU8 ? 255 : 127);
      };
      for (const ConvShape& shape : {kConvs[0], kConvs[1], kConvs[3], kConvs[6], kConvs[10]}) {
        for (const DType x : {kU8, kS8}) {
          Case c = conv_case(shape, x, kS8, x, false);
          c.inputs[3] = weight(c.inputs[3].shape());
          largest(c.inputs[0]);
          match(c, Tolerance{0, 0});
        }
      }
      for (const int64_t k : {64, 70}) {
        for (const DType a : {kU8, kS8}) {
          Case c{.op = Generic{"QuantizedMatMul", {}},
                 .inputs = {bytes(a, {33, k}, 1), number(0.02f), zero(a, zero_of(a)), weight({k, 37}), scales(37), zero(kS8, 0)},
                 .outputs = {{kF32, {33, 37}}},
                 .constants = 0x3e};
          c.inputs.resize(7, absent());
          largest(c.inputs[0]);
          match(c, Tolerance{1e-6, 1e-6});
        }
      }
    }
  }
}

template <class F>
void for_products_that_quantise_first(F&& match) {
  for (const int64_t m : {1, 7, 128}) {
    for (const int64_t k : {5, 64}) {
      Case c{.op = Generic{"DynamicQuantizeMatMul", {}},
             .inputs = {random_tensor({2, m, k}, 1), bytes(kS8, {k, 70}, 2), scales(70), zero(kS8, 0), random_tensor({70}, 3)},
             .outputs = {{kF32, {2, m, 70}}},
             .constants = 0x1e};
      match(c, Tolerance{1e-5, 1e-5});
      c.inputs[1] = bytes(kU8, {k, 70}, 2), c.inputs[3] = zero(kU8, 113);
      match(c, Tolerance{1e-5, 1e-5});
      std::fill_n(c.inputs[0].view().as<float>(), 2 * m * k, 0.f);
      match(c, Tolerance{1e-5, 1e-5});
    }
  }
}

template <class F>
void for_floats_and_bytes(F&& match) {
  for (const int64_t n : {1, 15, 16, 33, 70000}) {
    for (const DType dtype : {kU8, kS8}) {
      for (const unsigned constants : {6u, 0u}) {  // scales that are known, and computed ones
        match(Case{.op = Generic{"QuantizeLinear", {}},
                   .inputs = {special_values({n}), number(0.013f), zero(dtype, zero_of(dtype))},
                   .outputs = {{dtype, {n}}},
                   .constants = constants},
              Tolerance{0, 0});
        match(Case{.op = Generic{"DequantizeLinear", {}},
                   .inputs = {bytes(dtype, {n}, 1), number(0.013f), zero(dtype, zero_of(dtype))},
                   .outputs = {{kF32, {n}}},
                   .constants = constants},
              Tolerance{0, 0});
      }
    }
    for (const Tensor& x : {random_tensor({n}, 1), special_values({n})})
      match(Case{.op = Generic{"DynamicQuantizeLinear", {}}, .inputs = {x}, .outputs = {{kU8, {n}}, {kF32, {}}, {kU8, {}}}},
            Tolerance{0, 0});
  }
}

template <class F>
void for_sums_and_pools(F&& match) {
  Attributes last;
  last.set("channels_last", int64_t{1});
  Attributes window = last;
  window.set("kernel_shape", std::vector<int64_t>{3, 3});
  window.set("strides", std::vector<int64_t>{2, 2});
  window.set("dilations", std::vector<int64_t>{1, 1});
  window.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  for (const DType dtype : {kU8, kS8}) {
    for (const int64_t c : {1, 17, 64}) {
      Attributes product;
      product.set("function", std::string("Mul"));
      for (const Attributes& function : {Attributes(), product})
        match(Case{.op = Generic{"QuantizedBinary", function},
                   .inputs = {bytes(dtype, {2, 3, c}, 1), number(0.02f), zero(dtype, 3), bytes(kU8, {2, 3, c}, 2), number(0.03f),
                              zero(kU8, 120), number(0.05f), zero(dtype, zero_of(dtype))},
                   .outputs = {{dtype, {2, 3, c}}},
                   .constants = 0xf6},
              Tolerance{0, 0});
      match(Case{.op = Generic{"QuantizedGlobalAveragePool", last},
                 .inputs = {bytes(dtype, {2, 7, 7, c}, 1), number(0.02f), zero(dtype, 3), number(0.03f), zero(dtype, zero_of(dtype))},
                 .outputs = {{dtype, {2, 1, 1, c}}},
                 .constants = 0x1e},
            Tolerance{0, 0});
      match(Case{.op = Generic{"QuantizedMaxPool", window}, .inputs = {bytes(dtype, {2, 9, 8, c}, 1)}, .outputs = {{dtype, {2, 5, 4, c}}}},
            Tolerance{0, 0});
    }
  }
}

template <class F>
void for_products_of_few_bits(F&& match) {
  const auto check = [&](int64_t bits, int64_t block, int64_t rows, int64_t k, int64_t n) {
    const int64_t blocks = (k + block - 1) / block;
    Attributes attributes;
    for (const auto& [key, value] : {std::pair("K", k), std::pair("N", n), std::pair("bits", bits), std::pair("block_size", block)})
      attributes.set(key, value);
    Case c{.op = Generic{"MatMulNBits", attributes},
           .inputs = {random_tensor({rows, k}, 1), bytes(kU8, {n, blocks, block * bits / 8}, 2), random_tensor({n * blocks}, 3),
                      bytes(kU8, {n * ((blocks * bits + 7) / 8)}, 4)},
           .outputs = {{kF32, {rows, n}}},
           .constants = 0xe};
    match(c, Tolerance{1e-4, 1e-5});
    c.inputs.pop_back();
    match(c, Tolerance{1e-4, 1e-5});
  };
  for (const int64_t bits : {4, 8}) {
    for (const int64_t block : {16, 32, 64}) {
      for (const int64_t rows : {1, 4, 6, 20}) {
        for (const int64_t k : {32, 80, 1056}) check(bits, block, rows, k, 31);
      }
    }
    for (const int64_t n : {1, 6, 200}) check(bits, 32, 2, 64, n);
  }
}

}  // namespace serin::kernels::test::quant
