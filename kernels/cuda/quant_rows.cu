// quant_rows.cu: quantised tensors outside of products: to and from real numbers, sums and products of two, tables, pools. Memory is all that they cost: where
// one scale belongs to all elements, a thread takes 16 bytes at a time.

#include "kernels/cuda/dynamic_scale.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/quant.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

/// Which scale belongs to element i: one for all, one for each index of an axis, or one for each block of neighbours along it.
struct Granularity {
  bool one = true;
  Division inner, size, block;  ///< elements behind the axis; its length; a block (1: each index has its own)
  int64_t blocks = 0;

  __device__ int64_t index(int64_t i) const {
    if (one) return 0;
    const int64_t line = inner.quotient(i), outer = size.quotient(line), along = block.quotient(line - outer * size.d);
    return blocks == 0 ? along : (outer * blocks + along) * inner.d + i - line * inner.d;
  }
};

std::optional<Granularity> granularity_of(const OpDesc& desc, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape &x = desc.inputs[0].shape, &scale = desc.inputs[1].shape;
  Granularity g;
  if (scale.elements() == 1) return g;
  int64_t axis = attributes.integer("axis", 1);
  const int64_t block = attributes.integer("block_size", 0);
  if (axis < 0) axis += static_cast<int64_t>(x.rank());
  if (axis < 0 || axis >= static_cast<int64_t>(x.rank()) || block < 0) return why = "axis or block_size is out of range", std::nullopt;
  const auto at = static_cast<size_t>(axis);
  const int64_t n = x.elements();
  g.one = false;
  g.inner = Division(product(x, at + 1, x.rank()), n), g.size = Division(x[at], n), g.block = Division(std::max<int64_t>(block, 1), n);
  g.blocks = block == 0 ? 0 : ceil_div(x[at], block);
  Shape expected = x;
  expected[at] = g.blocks;
  const bool fits = block == 0 ? scale.rank() == 1 && scale[0] == x[at] : scale == expected;
  if (!fits) return why = "the scale does not fit the tensor", std::nullopt;
  return g;
}

/// The quotient is rounded to P, the type that is divided in, before it is rounded to a whole number. Q: of y's size; `zero` of y's type.
template <int kCount, class X, class P, class Q>
__global__ void quantise_elements(Granularity g, const X* x, const P* scale, const Q* zero, float low, float high, bool is_signed, Q* y,
                                  int64_t n) {
  const auto zero_at = [&](int64_t at) {
    if (!zero) return 0.f;
    return static_cast<float>(is_signed ? static_cast<int>(static_cast<std::make_signed_t<Q>>(zero[at])) : static_cast<int>(zero[at]));
  };
  const auto quantise = [&](X value, float by, float zero_point) {
    const float quotient = load(cast<P>(load(cast<P>(load(value))) / by));
    return static_cast<Q>(static_cast<int>(quantized(quotient, zero_point, low, high)));
  };
  if constexpr (kCount > 1) {  // one scale
    const float by = load(scale[0]), zero_point = zero_at(0);
    map_packs<kCount>(x, y, n, [&](X value) { return quantise(value, by, zero_point); });
  } else {
    for (int64_t i = first_element(); i < n; i += element_step()) {
      const int64_t at = g.index(i);
      y[i] = quantise(x[i], load(scale[at]), zero_at(at));
    }
  }
}

template <int kCount, class Q, class S, class Y>
__global__ void dequantise_elements(Granularity g, const Q* x, const S* scale, const Q* zero, Y* y, int64_t n) {
  const auto real = [](Q value, Q zero_point, float by) {
    const auto difference = static_cast<int64_t>(value) - static_cast<int64_t>(zero_point);
    return cast<Y>(static_cast<float>(difference) * by);
  };
  if constexpr (kCount > 1) {  // one scale
    const float by = load(scale[0]);
    const Q zero_point = zero ? zero[0] : Q(0);
    map_packs<kCount>(x, y, n, [&](Q value) { return real(value, zero_point, by); });
  } else {
    for (int64_t i = first_element(); i < n; i += element_step()) {
      const int64_t at = g.index(i);
      y[i] = real(x[i], zero ? zero[at] : Q(0), load(scale[at]));
    }
  }
}

/// An operand of bytes.
struct Quantised {
  const uint8_t* data;
  bool is_signed;
  const float* scale;
  ZeroPoints zero;

  __device__ int number(int64_t i) const { return as_number(data[i], is_signed); }
};

__global__ void join_quantised(Space<2> space, bool multiplies, Quantised a, Quantised b, Target to, uint8_t* y) {
  const Quantiser quantiser(to);
  const float a_scale = *a.scale, b_scale = *b.scale;
  const float both = rounded_product(a_scale, b_scale) / quantiser.scale, of_a = a_scale / quantiser.scale,
              of_b = b_scale / quantiser.scale;
  const int a_zero = a.zero(0), b_zero = b.zero(0);
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t at[2];
    space.locate(i, at);
    const auto left = static_cast<float>(a.number(at[0]) - a_zero), right = static_cast<float>(b.number(at[1]) - b_zero);
    const float real =
        multiplies ? rounded_product(rounded_product(left, right), both) : rounded_product(left, of_a) + rounded_product(right, of_b);
    y[i] = static_cast<uint8_t>(static_cast<int>(quantiser(real)));
  }
}

__global__ void look_up(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n) {
  uint8_t* const shared = shared_memory<uint8_t>();  // [256]
  shared[threadIdx.x] = table[threadIdx.x];
  __syncthreads();
  for (int64_t i = first_element(); i < n; i += element_step()) y[i] = shared[x[i]];
}

/// A warp for each channel of an image: its lanes share the pixels; or, where channels are last, each lane a channel of its own.
__global__ void mean_of_pixels(Quantised x, Target to, uint8_t* y, int64_t images, int64_t channels, int64_t pixels, bool channels_last) {
  const Quantiser quantiser(to);
  const float scale = *x.scale / quantiser.scale / static_cast<float>(pixels);
  const int zero = x.zero(0), lane = static_cast<int>(threadIdx.x);
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const int64_t wide = channels_last ? ceil_div(channels, 32) : channels, image = warp / wide;
  if (image >= images) return;
  const int64_t channel = channels_last ? warp % wide * 32 + lane : warp % wide;
  int64_t sum = 0;
  if (channels_last) {
    for (int64_t p = 0; p < pixels && channel < channels; ++p) sum += x.number((image * pixels + p) * channels + channel) - zero;
  } else {
    for (int64_t p = lane; p < pixels; p += 32) sum += x.number((image * channels + channel) * pixels + p) - zero;
    sum = combine_warp(sum, Plus{});
    if (lane != 0) return;
  }
  if (channel < channels)
    y[image * channels + channel] = static_cast<uint8_t>(static_cast<int>(quantiser(rounded_product(static_cast<float>(sum), scale))));
}

/// Windows over [n, h, w, c].
struct Windows {
  int64_t h, w, oh, ow, channels, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left, results;
};

/// Q: signed or unsigned bytes.
template <class Q>
__global__ void largest_of_windows(Windows s, Division channels, Division columns, Division lines, const Q* x, Q* y) {
  for (int64_t i = first_element(); i < s.results; i += element_step()) {
    const int64_t pixel = channels.quotient(i), line = columns.quotient(pixel), image = lines.quotient(line);
    const int64_t top = (line - image * s.oh) * s.stride_h - s.top, left = (pixel - line * s.ow) * s.stride_w - s.left;
    const Q* const from = x + image * s.h * s.w * s.channels + i - pixel * s.channels;
    Q most = std::numeric_limits<Q>::lowest();
    for (int64_t a = 0; a < s.kernel_h; ++a) {
      const int64_t h = top + a * s.dilation_h;
      if (h < 0 || h >= s.h) continue;
      for (int64_t b = 0; b < s.kernel_w; ++b) {
        const int64_t w = left + b * s.dilation_w;
        if (w < 0 || w >= s.w) continue;
        const Q value = from[(h * s.w + w) * s.channels];
        most = value > most ? value : most;
      }
    }
    y[i] = most;
  }
}

/// f16, bf16 and f32.
template <class F>
Prepared for_small_floats(DType dtype, std::string& why, F&& make) {
  switch (dtype) {
    case DType::kFloat32: return make(Element<float>{});
    case DType::kFloat16: return make(Element<Half>{});
    case DType::kBFloat16: return make(Element<BFloat16>{});
    default: return ref::refuse_dtype(why, dtype);
  }
}

/// What stands for real numbers: bytes, 16 bits, and sums of products.
template <class F>
Prepared for_quantised(DType dtype, std::string& why, F&& make) {
  switch (dtype) {
    case DType::kInt8: return make(Element<int8_t>{});
    case DType::kUInt8: return make(Element<uint8_t>{});
    case DType::kInt16: return make(Element<int16_t>{});
    case DType::kUInt16: return make(Element<uint16_t>{});
    case DType::kInt32: return make(Element<int32_t>{});
    default: return ref::refuse_dtype(why, dtype);
  }
}

template <int kCount, class A, class B>
bool are_aligned(const A* a, const B* b) {
  return is_aligned<A, kCount>(a) && is_aligned<B, kCount>(b);
}

bool has_scale(const OpDesc& desc, DType quantised, std::string& why) {
  if (!has_operand(desc, 0) || !has_operand(desc, 1))
    why = "expects x and a scale";
  else if (has_operand(desc, 2) &&
           (desc.inputs[2].dtype != quantised || desc.inputs[2].shape.elements() != desc.inputs[1].shape.elements()))
    why = "zero points do not fit the scale";
  return why.empty();
}

Quantised quantised_at(Inputs in, size_t i) {
  return {in[i].as<const uint8_t>(), in[i].dtype == DType::kInt8, in[i + 1].as<const float>(), zero_points(in, i + 2)};
}

bool is_quantised(const OpDesc& desc, size_t i) {
  return has_operand(desc, i) && is_byte(desc.inputs[i].dtype) && is_scale(desc, i + 1) && is_number(desc, i + 1) &&
         is_number(desc, i + 2) && is_byte(desc.inputs[i + 2].dtype);
}
bool is_target(const OpDesc& desc, size_t i) {
  return is_byte(desc.outputs[0].dtype) && is_scale(desc, i) && is_number(desc, i) && is_number(desc, i + 1) &&
         is_byte(desc.inputs[i + 1].dtype);
}

}  // namespace

Prepared prepare_quantise_linear(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const DType to = desc.outputs[0].dtype;
  const auto range = quantized_range(to);
  if (!range) return ref::refuse_dtype(why, to);
  if (!has_scale(desc, to, why)) return nullptr;
  const std::string precision = attributes.text("precision", "");
  if (!precision.empty() && precision != dtype_name(desc.inputs[1].dtype))
    return refuse(why, "it divides in another type than the scale's");
  const auto granularity = granularity_of(desc, why);
  if (!granularity) return nullptr;
  const bool is_signed = range->low < 0;
  const auto low = static_cast<float>(range->low), high = static_cast<float>(range->high);
  if (dtype_size(to) == 1 && to != DType::kInt8 && to != DType::kUInt8) return refuse(why, "zero points of fewer than eight bits");
  return for_small_floats(desc.inputs[0].dtype, why, [&]<class X>(Element<X>) -> Prepared {
    return for_small_floats(desc.inputs[1].dtype, why, [&]<class P>(Element<P>) -> Prepared {
      const auto kernel = [&]<class Q>(Element<Q>) -> Prepared {
        return make_kernel([g = *granularity, low, high, is_signed](Stream& stream, Inputs in, Outputs out) -> Fault {
          constexpr int kCount = 16 / sizeof(X);
          const X* const x = in[0].as<const X>();
          Q* const y = out[0].as<Q>();
          const int64_t n = in[0].elements();
          if (g.one && are_aligned<kCount>(x, y)) {
            return launch(stream, {blocks_for(n, int64_t{kBlockThreads} * kCount), kBlockThreads}, quantise_elements<kCount, X, P, Q>, g, x,
                          in[1].as<const P>(), operand_as<Q>(in, 2), low, high, is_signed, y, n);
          }
          return launch(stream, {blocks_for(n, kBlockThreads), kBlockThreads}, quantise_elements<1, X, P, Q>, g, x, in[1].as<const P>(),
                        operand_as<Q>(in, 2), low, high, is_signed, y, n);
        });
      };
      return dtype_size(to) == 2 ? kernel(Element<uint16_t>{}) : kernel(Element<uint8_t>{});
    });
  });
}

Prepared prepare_dequantise_linear(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_scale(desc, desc.inputs[0].dtype, why)) return nullptr;
  const auto granularity = granularity_of(desc, why);
  if (!granularity) return nullptr;
  return for_quantised(desc.inputs[0].dtype, why, [&]<class Q>(Element<Q>) -> Prepared {
    return for_small_floats(desc.inputs[1].dtype, why, [&]<class S>(Element<S>) -> Prepared {
      const auto kernel = [&]<class Y>(Element<Y>) -> Prepared {
        return make_kernel([g = *granularity](Stream& stream, Inputs in, Outputs out) -> Fault {
          constexpr int kCount = sizeof(Q) < sizeof(Y) ? 16 / sizeof(Y) : 1;
          const Q* const x = in[0].as<const Q>();
          Y* const y = out[0].as<Y>();
          const int64_t n = in[0].elements();
          if (g.one && kCount > 1 && are_aligned<kCount>(x, y)) {
            return launch(stream, {blocks_for(n, int64_t{kBlockThreads} * kCount), kBlockThreads}, dequantise_elements<kCount, Q, S, Y>, g,
                          x, in[1].as<const S>(), operand_as<Q>(in, 2), y, n);
          }
          return launch(stream, {blocks_for(n, kBlockThreads), kBlockThreads}, dequantise_elements<1, Q, S, Y>, g, x, in[1].as<const S>(),
                        operand_as<Q>(in, 2), y, n);
        });
      };
      if (desc.outputs[0].dtype == desc.inputs[1].dtype) return kernel(Element<S>{});
      if (desc.outputs[0].dtype == DType::kFloat32) return kernel(Element<float>{});
      return refuse(why, "the result is neither of the scale's type nor f32");
    });
  });
}

Prepared prepare_dynamic_quantise_linear(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 1 || desc.outputs.size() != 3) return refuse(why, "expects one input and three outputs");
  if (desc.inputs[0].dtype != DType::kFloat32) return ref::refuse_dtype(why, desc.inputs[0].dtype);
  const DynamicMemory memory(0);  // for what nobody asks for
  return make_kernel(
      [memory](Stream& stream, Inputs in, Outputs out) -> Fault {
        DynamicMemory::At at = memory.at(stream.scratch);
        at.bytes = out[0].as<uint8_t>();
        if (out[1].data) at.scale = out[1].as<float>();
        if (out[2].data) at.zero = out[2].as<uint8_t>();
        return quantise_dynamically(stream, in[0].as<const float>(), in[0].elements(), at);
      },
      {.scratch_bytes = memory.bytes()});
}

Prepared prepare_quantised_binary(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_quantised(desc, 0) || !is_quantised(desc, 3) || !is_target(desc, 6))
    return refuse(why, "operands and result must be bytes with one f32 scale each");
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const bool multiplies = attributes.text("function", "Add") == "Mul", relu = attributes.text("activation", "") == "Relu";
  const Shape& y = desc.outputs[0].shape;
  const Space<2> space(y, {broadcast_strides(desc.inputs[0].shape, y), broadcast_strides(desc.inputs[3].shape, y)});
  return make_kernel([space, multiplies, relu](Stream& stream, Inputs in, Outputs out) -> Fault {
    return launch(stream, {blocks_for(space.elements, kBlockThreads), kBlockThreads}, join_quantised, space, multiplies,
                  quantised_at(in, 0), quantised_at(in, 3), target_of(in, 6, out[0].dtype, relu), out[0].as<uint8_t>());
  });
}

Prepared prepare_quantised_lookup(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 2 || !is_byte(desc.inputs[0].dtype) || desc.inputs[1].shape.elements() != 256)
    return refuse(why, "expects bytes and a table of 256");
  constexpr int64_t kOfBlock = 16 * kBlockThreads;  // the table is read once for so many
  return make_kernel([](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t n = in[0].elements();
    return launch(stream, {blocks_for(n, kOfBlock), 256, 256}, look_up, in[0].as<const uint8_t>(), in[1].as<const uint8_t>(),
                  out[0].as<uint8_t>(), n);
  });
}

Prepared prepare_quantised_global_average_pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 3 || !is_quantised(desc, 0) || !is_target(desc, 3))
    return refuse(why, "input and result must be bytes with one f32 scale each");
  const bool last = std::get<Generic>(desc.op).attributes.integer("channels_last", 0) != 0;
  const int64_t images = x[0], channels = last ? x.back() : x[1], pixels = product(x, 1, x.rank()) / std::max<int64_t>(channels, 1);
  return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
    constexpr int kWarps = 4;
    const int64_t warps = images * (last ? ceil_div(channels, 32) : channels);
    return launch(stream, {blocks_for(warps, kWarps), dim3(32, kWarps)}, mean_of_pixels, quantised_at(in, 0),
                  target_of(in, 3, out[0].dtype, false), out[0].as<uint8_t>(), images, channels, pixels, last);
  });
}

Prepared prepare_quantised_max_pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const auto kernel = attributes.integers("kernel_shape"), strides = attributes.integers("strides"),
             dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  if (x.rank() != 4 || kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 ||
      attributes.integer("channels_last", 0) == 0 || !is_byte(desc.inputs[0].dtype))
    return refuse(why, "only bytes, two spatial axes, channels last");
  const Windows s{x[1],       x[2],       y[1],         y[2],         x[3],    kernel[0], kernel[1],
                  strides[0], strides[1], dilations[0], dilations[1], pads[0], pads[1],   y.elements()};
  const Division channels(s.channels, s.results), columns(s.ow, s.results), lines(s.oh, s.results);
  const auto make = [&]<class Q>(Element<Q>) -> Prepared {
    return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(s.results, kBlockThreads), kBlockThreads}, largest_of_windows<Q>, s, channels, columns, lines,
                    in[0].as<const Q>(), out[0].as<Q>());
    });
  };
  return desc.inputs[0].dtype == DType::kInt8 ? make(Element<int8_t>{}) : make(Element<uint8_t>{});
}

}  // namespace serin::kernels::cuda
