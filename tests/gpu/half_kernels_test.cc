// The kernels that a region of 16-bit floats with its channels last passes through: each with those types and in that layout, compared with the reference.
//
// Kernel and reference round once, from f32 and from double: results are neighbours at most, one part in 2^10 (f16) or 2^7 (bf16) of each other. What rounds
// in between, the weights of attention, may be off by as much of the largest element.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

constexpr DType kHalves[] = {DType::kFloat16, DType::kBFloat16};
constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

double spacing(DType dtype) { return dtype == DType::kFloat16 ? 0x1p-10 : dtype == DType::kBFloat16 ? 0x1p-7 : 1e-5; }
Tolerance rounding(DType dtype) { return {spacing(dtype), spacing(dtype) / 64}; }

/// Normally distributed, rounded to `dtype`.
Tensor random_of(DType dtype, const Shape& shape, uint32_t seed, float scale = 1.f) {
  const Tensor wide = random_tensor(shape, seed, scale);
  if (dtype == DType::kFloat32) return wide;
  Tensor result(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float value = wide.view().as<const float>()[i];
    if (dtype == DType::kFloat16)
      result.view().as<Half>()[i] = to_half(value);
    else
      result.view().as<BFloat16>()[i] = to_bfloat16(value);
  }
  return result;
}

struct Window {
  Shape x, weight, y;  ///< channels last
  std::vector<int64_t> strides, dilations, pads;
  int64_t group;
};

TEST(HalfKernels, ConvolvesWithChannelsLast) {
  const Window windows[] = {{{2, 9, 8, 3}, {5, 3, 3, 3}, {2, 5, 4, 5}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1},
                            {{1, 7, 7, 4}, {6, 3, 1, 2}, {1, 3, 7, 6}, {1, 1}, {2, 1}, {0, 0, 0, 0}, 2},
                            {{2, 6, 5, 16}, {24, 1, 1, 16}, {2, 6, 5, 24}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1}};
  for (const Window& w : windows) {
    for (const DType dtype : kFloats) {
      for (const bool residual : {false, true}) {
        const Conv op{w.strides, w.dilations, w.pads, w.group, true, {UnaryFn::kSilu, 0.f, 0.f, residual}, true};
        Case c{.op = op,
               .inputs = {random_of(dtype, w.x, 1), random_of(dtype, w.weight, 2), random_of(dtype, {w.weight[0]}, 3)},
               .outputs = {{dtype, w.y}}};
        if (residual) c.inputs.push_back(random_of(dtype, w.y, 4));
        expect_agrees(c, rounding(dtype));
      }
    }
  }
}

TEST(HalfKernels, ConvolvesEachChannelByItself) {
  const Window windows[] = {{{2, 9, 11, 16}, {16, 3, 3, 1}, {2, 9, 11, 16}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 16},
                            {{1, 12, 9, 264}, {264, 5, 5, 1}, {1, 6, 5, 264}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 264},
                            {{1, 5, 6, 7}, {7, 2, 3, 1}, {1, 4, 5, 7}, {1, 1}, {1, 1}, {0, 0, 0, 1}, 7},
                            {{3, 4, 4, 40}, {40, 3, 3, 1}, {3, 4, 2, 40}, {1, 3}, {1, 1}, {1, 1, 1, 1}, 40},
                            {{1, 13, 15, 24}, {24, 3, 3, 1}, {1, 7, 8, 24}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 24},
                            {{2, 8, 9, 72}, {72, 5, 5, 1}, {2, 8, 9, 72}, {1, 1}, {1, 1}, {2, 2, 2, 2}, 72},
                            {{1, 3, 3, 520}, {520, 3, 3, 1}, {1, 3, 3, 520}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 520}};
  for (const Window& w : windows) {
    for (const DType dtype : kFloats) {
      for (const bool residual : {false, true}) {
        for (const UnaryFn fn : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kClip, UnaryFn::kHardSwish, UnaryFn::kSilu, UnaryFn::kTanh}) {
          const Conv op{w.strides, w.dilations, w.pads, w.group, residual, {fn, 0.f, 6.f, residual}, true};
          Case c{.op = op, .inputs = {random_of(dtype, w.x, 1), random_of(dtype, w.weight, 2)}, .outputs = {{dtype, w.y}}};
          if (residual) c.inputs.push_back(random_of(dtype, {w.weight[0]}, 3));
          if (residual) c.inputs.push_back(random_of(dtype, w.y, 4));
          expect_agrees(c, dtype == DType::kFloat32 ? Tolerance{1e-4, 1e-5} : rounding(dtype));
        }
      }
    }
  }
}

/// Windows that neither overlap nor leave gaps.
struct PatchWindow {
  Shape x, weight, y;
};
Conv convolution_of(const PatchWindow& w, bool bias, Epilogue epilogue) {
  return {{w.weight[1], w.weight[2]}, {1, 1}, {0, 0, 0, 0}, 1, bias, epilogue, true};
}

TEST(HalfKernels, ConvolvesPatches) {
  const PatchWindow windows[] = {{{2, 32, 48, 3}, {8, 16, 16, 3}, {2, 2, 3, 8}},     // a line of a window is pieces of 16 bytes
                                 {{2, 33, 49, 3}, {8, 16, 16, 3}, {2, 2, 3, 8}},     // and lines of x are not; the rest is not read
                                 {{1, 28, 42, 3}, {16, 14, 14, 3}, {1, 2, 3, 16}},   // two elements of 16 bits
                                 {{2, 7, 10, 16}, {24, 2, 2, 16}, {2, 3, 5, 24}},    // a line of x is not read
                                 {{3, 6, 9, 5}, {7, 2, 3, 5}, {3, 3, 3, 7}},         // odd lengths
                                 {{1, 5, 70, 1}, {130, 5, 1, 1}, {1, 1, 70, 130}}};  // windows of one column
  struct After {
    bool bias;
    Epilogue epilogue;
  };
  const After afters[] = {{false, {}},
                          {true, {UnaryFn::kRelu, 0.f, 0.f, false}},
                          {false, {UnaryFn::kIdentity, 0.f, 0.f, true}},
                          {true, {UnaryFn::kClip, -1.f, 6.f, true}},
                          {true, {UnaryFn::kSilu, 0.f, 0.f, true}}};
  for (const PatchWindow& w : windows) {
    for (const DType dtype : kFloats) {
      for (const After& after : afters) {
        Case c{.op = convolution_of(w, after.bias, after.epilogue),
               .inputs = {random_of(dtype, w.x, 1), random_of(dtype, w.weight, 2, 0.3f)},
               .outputs = {{dtype, w.y}}};
        if (after.bias) c.inputs.push_back(random_of(dtype, {w.weight[0]}, 3));
        if (after.epilogue.residual) c.inputs.push_back(random_of(dtype, w.y, 4));
        expect_agrees(c, dtype == DType::kFloat32 ? Tolerance{1e-5, 2e-6} : rounding(dtype));
      }
    }
  }
}

TEST(HalfKernels, ConvolvesAsAProductOnlyWhatIsPatches) {
  const auto rows = each_of(device_backend().table()[Op(Conv{}).index()]);
  const auto row = std::ranges::find(rows, "conv_patches_cuda", &KernelRow::name);
  ASSERT_NE(row, rows.end());
  const auto refusal = [&](const Conv& op, const Shape& x, const Shape& weight, const Shape& y, DType dtype = DType::kFloat16,
                           const Shape& residual = {}) {
    Case c{.op = op, .inputs = {Tensor(dtype, x), Tensor(dtype, weight)}, .outputs = {{dtype, y}}};
    if (op.epilogue.residual) c.inputs.emplace_back(dtype, residual);
    PackedWeights weights;
    PrepareContext context{&weights};
    std::string why;
    device_backend().device()->make_current();
    return (*row)->prepare(c.describe(), context, why) ? "accepted" : why;
  };
  const PatchWindow w{{2, 8, 12, 3}, {5, 4, 4, 3}, {2, 2, 3, 5}};
  const Conv op = convolution_of(w, false, {});
  EXPECT_EQ(refusal(op, w.x, w.weight, w.y), "accepted");
  EXPECT_EQ(refusal(op, w.x, w.weight, w.y, DType::kFloat64), "only f32, f16 and bf16");
  Conv other = op;
  other.channels_last = false;
  EXPECT_EQ(refusal(other, {2, 3, 8, 12}, {5, 3, 4, 4}, {2, 5, 2, 3}), "channels are not last, or not two spatial axes");
  other = op, other.strides = {4}, other.dilations = {1}, other.pads = {0, 0};
  EXPECT_EQ(refusal(other, {2, 8, 3}, {5, 4, 3}, {2, 2, 5}), "channels are not last, or not two spatial axes");
  other = op, other.pads = {0, 0, 0, 4};
  EXPECT_EQ(refusal(other, w.x, w.weight, {2, 2, 4, 5}), "padded");
  other = op, other.strides = {4, 2};
  EXPECT_EQ(refusal(other, w.x, w.weight, {2, 2, 5, 5}), "windows overlap, or leave gaps");
  other = op, other.dilations = {1, 2};
  EXPECT_EQ(refusal(other, w.x, w.weight, {2, 2, 2, 5}), "dilated");
  other = op, other.group = 3;
  EXPECT_EQ(refusal(other, w.x, {6, 4, 4, 1}, {2, 2, 3, 6}), "groups");
  other = op, other.strides = {1, 1};
  EXPECT_EQ(refusal(other, w.x, {5, 1, 1, 3}, {2, 8, 12, 5}), "its window is one pixel: nothing is to be rearranged");
  other = op, other.epilogue.residual = true;
  EXPECT_EQ(refusal(other, w.x, w.weight, w.y, DType::kFloat16, {1, 1, 1, 5}), "the residual broadcasts");
}

TEST(HalfKernels, PoolsWithChannelsLast) {
  for (const DType dtype : kFloats) {
    for (const bool average : {false, true}) {
      for (const bool count : {false, true}) {
        const Pool op{average, count, {3, 2}, {2, 1}, {1, 2}, {1, 0, 1, 2}, true};
        for (const int64_t channels : {5, 16}) {  // one by one, and 16 bytes of them
          expect_agrees({.op = op, .inputs = {random_of(dtype, {2, 9, 8, channels}, 1)}, .outputs = {{dtype, {2, 5, 8, channels}}}},
                        rounding(dtype));
        }
      }
    }
  }
}

TEST(HalfKernels, NormalisesByStatisticsOfF32) {
  for (const DType dtype : kHalves) {
    for (const DType statistics : {dtype, DType::kFloat32}) {
      const Tensor variance = random_integers(statistics, {7}, 5, 1, 4);
      expect_agrees({.op = BatchNorm{1e-3f},
                     .inputs = {random_of(dtype, {30, 7}, 1), random_of(statistics, {7}, 2), random_of(statistics, {7}, 3),
                                random_of(statistics, {7}, 4), variance},
                     .outputs = {{dtype, {30, 7}}}},
                    rounding(dtype));
    }
  }
}

TEST(HalfKernels, RunsChainsOfMixedTypes) {
  const auto step = [](auto function, int32_t a, int32_t b = 0, int32_t c = 0) { return Pointwise::Step{function, {a, b, c}}; };
  // t = x * s; u = t + b; v = silu(u); w = v < t; y = w ? u : v: results that are read at once, later, and twice.
  const Pointwise op{{step(Binary{BinaryFn::kMul}, 0, 1), step(Binary{BinaryFn::kAdd}, 3, 2), step(Unary{UnaryFn::kSilu}, 4),
                      step(Binary{BinaryFn::kLess}, 5, 3), step(Select{}, 6, 4, 5)}};
  for (const DType dtype : kHalves) {
    for (const DType y : {dtype, DType::kFloat32}) {
      for (const int64_t channels : {24, 13}) {  // eight at a time, and one by one
        const Shape image{2, 3, 5, channels};
        expect_agrees(
            {.op = op,
             .inputs = {random_of(dtype, image, 1), random_of(dtype, {channels}, 2), random_of(DType::kFloat32, {2, 1, 1, channels}, 3)},
             .outputs = {{y, image}}},
            rounding(dtype));
      }
    }
  }
}

/// Every f16, and as many of bf16: what follows products is computed by fewer instructions than in f32.
TEST(HalfKernels, ActivatesEveryNumber) {
  for (const DType dtype : kHalves) {
    Tensor x(dtype, {1 << 16});
    for (uint32_t i = 0; i < 1u << 16; ++i) x.view().as<uint16_t>()[i] = static_cast<uint16_t>(i);
    for (const UnaryFn fn :
         {UnaryFn::kGelu, UnaryFn::kGeluTanh, UnaryFn::kSilu, UnaryFn::kSigmoid, UnaryFn::kTanh, UnaryFn::kRelu, UnaryFn::kExp})
      expect_agrees({.op = Unary{fn}, .inputs = {x}, .outputs = {{dtype, {1 << 16}}}}, {spacing(dtype), 1e-6});
  }
}

/// Means of pixels, channels last: 16 bytes of neighbouring results at a time, by few and by many lines.
TEST(HalfKernels, ReducesTheMiddle) {
  for (const DType dtype : kFloats) {
    for (const auto& [x, axes, y] : std::vector<std::tuple<Shape, std::vector<int64_t>, Shape>>{
             {{2, 9, 7, 16}, {1, 2}, {2, 1, 1, 16}}, {{1, 300, 264}, {1}, {1, 264}}, {{300, 3, 8}, {1}, {300, 8}}, {{50, 24}, {0}, {24}}}) {
      for (const ReduceFn fn : {ReduceFn::kMean, ReduceFn::kMax, ReduceFn::kSumSquare})
        expect_agrees({.op = Reduce{fn, axes}, .inputs = {random_of(dtype, x, 1)}, .outputs = {{dtype, y}}},
                      dtype == DType::kFloat32 ? Tolerance{1e-4, 1e-5} : rounding(dtype));
    }
  }
}

TEST(HalfKernels, KeepsWhatIsFiniteFinite) {
  const float largest = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  const Tensor x({7}, std::vector<float>{largest, -largest, infinity, -infinity, 70000.f, std::nanf(""), 1.5f});
  for (const DType dtype : kHalves) {
    for (const bool saturate : {false, true}) expect_agrees({.op = Cast{saturate}, .inputs = {x}, .outputs = {{dtype, {7}}}});
  }
}

TEST(HalfKernels, TurnsTiles) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt8}) {
    for (const Shape& x :
         {Shape{3, 40, 70}, Shape{1, 33, 5}, Shape{2, 1, 64}, Shape{70, 2, 3}, Shape{2, 2, 64}, Shape{3, 3, 32}, Shape{1, 4, 48}}) {
      const StridedCopy op{0, {x[1] * x[2], 1, x[2]}};
      expect_agrees({.op = op, .inputs = {random_integers(dtype, x, 1)}, .outputs = {{dtype, {x[0], x[2], x[1]}}}});
    }
  }
}

TEST(HalfKernels, RowsOfEveryKind) {
  for (const DType dtype : kHalves) {
    for (const int64_t n : {31, 8, 264, 768, 1024, 1032, 1500}) {  // element by element, held by a warp, read again by a block
      const Tensor x = random_of(dtype, {5, n}, 1, 2.f), scale = random_of(dtype, {n}, 2), bias = random_of(dtype, {n}, 3);
      const Output y{dtype, {5, n}};
      expect_agrees({.op = LayerNorm{-1, 1e-5f, true}, .inputs = {x, scale, bias}, .outputs = {y}}, rounding(dtype));
      expect_agrees({.op = Softmax{-1}, .inputs = {x}, .outputs = {y}}, rounding(dtype));
      expect_agrees({.op = Reduce{ReduceFn::kMean, {1}}, .inputs = {x}, .outputs = {{dtype, {5, 1}}}}, rounding(dtype));
    }
    expect_agrees(
        {.op = MatMul{false, true, 1.f, true, {UnaryFn::kGelu, 0.f, 0.f, true}},
         .inputs = {random_of(dtype, {33, 40}, 1), random_of(dtype, {70, 40}, 2), random_of(dtype, {70}, 3), random_of(dtype, {33, 70}, 4)},
         .outputs = {{dtype, {33, 70}}}},
        rounding(dtype));
  }
}

/// Rows of 16 bytes, which libraries take: one weight for all products, one for each, and every function that may follow.
TEST(HalfKernels, MultipliesWithEveryEpilogue) {
  struct Sizes {
    Shape a, b, y;
    bool transpose_a, transpose_b;
  };
  const Sizes sizes[] = {{{3, 16, 64}, {64, 136}, {3, 16, 136}, false, false},
                         {{2, 2, 24, 32}, {2, 2, 48, 32}, {2, 2, 24, 48}, false, true},
                         {{40, 24}, {40, 16}, {24, 16}, true, false}};
  for (const DType dtype : kHalves) {
    for (const Sizes& s : sizes) {
      for (const UnaryFn fn : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kGelu, UnaryFn::kGeluTanh, UnaryFn::kSilu, UnaryFn::kSigmoid,
                               UnaryFn::kTanh, UnaryFn::kHardSwish}) {
        for (const bool residual : {false, true}) {
          Case c{.op = MatMul{s.transpose_a, s.transpose_b, 1.f, residual, {fn, 0.f, 0.f, residual}},
                 .inputs = {random_of(dtype, s.a, 1, 0.3f), random_of(dtype, s.b, 2, 0.3f)},
                 .outputs = {{dtype, s.y}}};
          if (residual) c.inputs.push_back(random_of(dtype, {s.y.back()}, 3));
          if (residual) c.inputs.push_back(random_of(dtype, s.y, 4));
          expect_agrees(c, rounding(dtype));
        }
      }
    }
  }
}

// ---- attention ----

struct Heads {
  int64_t batch, q_heads, kv_heads, q_len, kv_len, head, v_head;
};

Case attention(DType dtype, const Heads& n) {
  return {
      .op = Generic{"Attention", {}},
      .inputs = {random_of(dtype, {n.batch, n.q_heads, n.q_len, n.head}, 1), random_of(dtype, {n.batch, n.kv_heads, n.kv_len, n.head}, 2),
                 random_of(dtype, {n.batch, n.kv_heads, n.kv_len, n.v_head}, 3)},
      .outputs = {{dtype, {n.batch, n.q_heads, n.q_len, n.v_head}}}};
}
/// Weights are rounded to the type, and so is y: of values about 1.
Tolerance attended(DType dtype) { return {spacing(dtype), spacing(dtype)}; }

TEST(HalfAttention, OfEverySize) {
  const Heads sizes[] = {{1, 1, 1, 1, 1, 8, 8},       {2, 4, 2, 33, 150, 40, 24},  {1, 2, 2, 64, 64, 64, 64},
                         {1, 1, 1, 130, 65, 128, 72}, {1, 2, 1, 70, 129, 96, 128}, {1, 2, 2, 5, 7, 13, 9}};
  for (const DType dtype : kHalves) {
    for (const Heads& n : sizes) expect_agrees(attention(dtype, n), attended(dtype));
  }
}

TEST(HalfAttention, WithMasks) {
  for (const DType dtype : kHalves) {
    for (const DType mask : {dtype, DType::kFloat32, DType::kBool}) {
      for (const Shape& shape : {Shape{33, 70}, Shape{2, 1, 1, 70}, Shape{2, 4, 33, 70}, Shape{4, 1, 65}}) {
        Case c = attention(dtype, {2, 4, 2, 33, 70, 16, 16});
        c.inputs.push_back(mask == DType::kBool ? random_integers(mask, shape, 5) : random_of(mask, shape, 4, 3.f));
        set(c, "masked_to_zero", int64_t{1});
        set(c, "softcap", 2.0);
        expect_agrees(c, attended(dtype));
      }
    }
  }
}

/// The lowest number for minus infinity, as exporters write it: a query whose keys all have it gets the mean of their values, in powers of two as well.
TEST(HalfAttention, WithMasksOfTheLowestNumber) {
  for (const DType dtype : kHalves) {
    for (const Shape& shape : {Shape{33, 150}, Shape{2, 1, 1, 150}}) {
      Case c = attention(dtype, {2, 4, 2, 33, 150, 16, 16});
      Tensor mask(DType::kFloat32, shape);
      const int64_t columns = shape.back(), rows = shape.elements() / columns;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t j = 0; j < columns; ++j) {
          const bool hidden = row % 2 == 1 || j < 70;  // every second row whole; of the others more than the keys of a tile
          mask.view().as<float>()[row * columns + j] = hidden ? std::numeric_limits<float>::lowest() : 0.f;
        }
      }
      c.inputs.push_back(mask);
      expect_agrees(c, attended(dtype));
    }
  }
}

TEST(HalfAttention, CausalAfterAPast) {
  for (const DType dtype : kHalves) {
    Case c = attention(dtype, {2, 4, 2, 3, 3, 16, 8});
    c.inputs.push_back(Tensor(DType::kUndefined, {}));
    c.inputs.push_back(random_of(dtype, {2, 2, 80, 16}, 6));
    c.inputs.push_back(random_of(dtype, {2, 2, 80, 8}, 7));
    set(c, "is_causal", int64_t{1});
    set(c, "scale", 1.5);
    expect_agrees(c, attended(dtype));
    Case long_one = attention(dtype, {1, 1, 1, 200, 200, 32, 32});
    set(long_one, "is_causal", int64_t{1});
    expect_agrees(long_one, attended(dtype));
  }
}

TEST(HalfAttention, OfPaddedSamples) {
  for (const DType dtype : kHalves) {
    Case c = attention(dtype, {2, 1, 1, 9, 100, 16, 16});
    for (int i = 0; i < 3; ++i) c.inputs.push_back(Tensor(DType::kUndefined, {}));
    c.inputs.push_back(Tensor({2}, std::vector<int64_t>{70, 3}));
    expect_agrees(c, attended(dtype));
  }
}

/// As in a cache that was never written there: rows of keys and values behind those that count are not looked at.
TEST(HalfAttention, OfPaddedSamplesWithAnythingBehindThem) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const int64_t counts[] = {70, 3}, rows = 100, width = 16;
    Case c = attention(dtype, {2, 1, 1, 9, rows, width, width});
    for (const size_t operand : {1, 2}) {
      for (int64_t sample = 0; sample < 2; ++sample) {
        for (int64_t at = counts[sample] * width; at < rows * width; ++at) {
          const int64_t element = sample * rows * width + at;
          if (dtype == DType::kFloat32)
            c.inputs[operand].view().as<float>()[element] = std::numeric_limits<float>::quiet_NaN();
          else
            c.inputs[operand].view().as<uint16_t>()[element] = 0x7FFF;  // NaN in both
        }
      }
    }
    for (int i = 0; i < 3; ++i) c.inputs.push_back(Tensor(DType::kUndefined, {}));
    c.inputs.push_back(Tensor({2}, std::vector<int64_t>(std::begin(counts), std::end(counts))));
    expect_agrees(c, dtype == DType::kFloat32 ? Tolerance{1e-4, 1e-5} : attended(dtype));
  }
}

/// q, k and v cut out of one product, as view_attention_operands() has them.
TEST(HalfAttention, OfOperandsWithinOneTensor) {
  for (const DType dtype : kHalves) {
    const int64_t batch = 2, rows = 21, heads = 3, width = 16, all = 3 * heads * width;
    const Tensor qkv = random_of(dtype, {batch, rows, all}, 1);
    Case c{.op = Generic{"Attention", {}}, .inputs = {qkv, qkv, qkv}, .outputs = {{dtype, {batch, rows, heads, width}}}};
    const char* const views[] = {"q_view", "k_view", "v_view"};
    for (int64_t i = 0; i < 3; ++i)
      set(c, views[i], std::vector<int64_t>{batch, heads, rows, width, i * heads * width, rows * all, width, all});
    set(c, "heads_inside", int64_t{1});
    expect_agrees(c, attended(dtype));
  }
}

}  // namespace
}  // namespace serin::kernels::test
