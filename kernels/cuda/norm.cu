// norm.cu: Softmax, LayerNorm and RMSNormalization: rows that are read, reduced and written again.
//
// A warp takes a row of up to 1,024 elements and, where they lie in pieces of 16 bytes, holds it in registers: it is read once and written once. A block of
// eight warps takes a longer row and reads it again for each pass, from the first cache. Sums are in float for f32 and the 16-bit floats (a thread adds few
// elements, the rest is a tree), in double for f64. An axis that is not the last has its lines side by side in memory: there each thread takes a line of its own.

#include <algorithm>
#include <limits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int64_t kWarpRow = 1024;
constexpr int kLongWarps = 8;
constexpr int kShortRows = 4;  // warps, and so rows, of a block of short rows

template <class C>
struct Larger {
  __device__ C operator()(C a, C b) const { return maximum(a, b); }
};

/// This row of a grid in which every row has kWarps warps; blocks of one warp each would leave multiprocessors half empty.
template <int kWarps>
__device__ int64_t row_index() {
  return kWarps == 1 ? static_cast<int64_t>(blockIdx.x) * kShortRows + threadIdx.y : static_cast<int64_t>(blockIdx.x);
}
template <int kWarps>
Grid row_grid(int64_t rows, size_t shared_bytes) {
  if (kWarps == 1) return {dim3(blocks_for(rows, kShortRows)), dim3(32, kShortRows), 0};
  return {dim3(blocks_for(rows, 1)), dim3(32 * kWarps), shared_bytes};
}

/// A row of up to kWarpRow elements in the registers of a warp, `kPack` neighbours at a time.
template <class T>
struct HeldRow {
  using C = compute_t<T>;
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T)), kPacks = static_cast<int>(kWarpRow) / (32 * kPack);

  C values[kPacks][kPack];

  static __device__ int first(int p) { return (p * 32 + static_cast<int>(threadIdx.x)) * kPack; }
  __device__ void read(const T* x, int64_t n) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (first(p) >= n) break;
      const auto pack = load_pack<kPack>(x + first(p));
#pragma unroll
      for (int i = 0; i < kPack; ++i) values[p][i] = load(pack.values[i]);
    }
  }
  /// f(value, where it stands in the row) for each.
  template <class F>
  __device__ void each(int64_t n, F f) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (first(p) >= n) break;
#pragma unroll
      for (int i = 0; i < kPack; ++i) f(values[p][i], p, i);
    }
  }
  __device__ void write(T* y, int64_t n) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (first(p) >= n) break;
      Pack<T, kPack> pack;
#pragma unroll
      for (int i = 0; i < kPack; ++i) pack.values[i] = cast<T>(values[p][i]);
      store_pack(y + first(p), pack);
    }
  }
};

template <class T>
bool can_be_held(int64_t n, std::initializer_list<const T*> operands) {
  constexpr int kPack = HeldRow<T>::kPack;
  return n <= kWarpRow && n % kPack == 0 && std::ranges::all_of(operands, [](const T* p) { return is_aligned<T, kPack>(p); });
}

template <class T>
__global__ void softmax_held(const T* x, T* y, int64_t rows, int64_t n, bool log) {
  using C = compute_t<T>;
  const int64_t at = row_index<1>();
  if (at >= rows) return;
  HeldRow<T> row;
  row.read(x + at * n, n);
  C max = -std::numeric_limits<C>::infinity(), sum = 0;
  row.each(n, [&](C& value, int, int) { max = maximum(value, max); });
  max = combine_warp(max, Larger<C>{});
  row.each(n, [&](C& value, int, int) {
    value -= max;
    const C e = std::exp(value);
    sum += e;
    if (!log) value = e;
  });
  sum = combine_warp(sum, Plus{});
  const C scale = log ? std::log(sum) : C(1) / sum;
  row.each(n, [&](C& value, int, int) { value = log ? value - scale : value * scale; });
  row.write(y + at * n, n);
}

template <class T>
__global__ void norm_held(const T* x, const T* scale, const T* bias, T* y, int64_t rows, int64_t n, float epsilon, bool centred) {
  using C = compute_t<T>;
  const int64_t at = row_index<1>();
  if (at >= rows) return;
  HeldRow<T> row, factors, terms;
  row.read(x + at * n, n);
  factors.read(scale, n);
  if (bias) terms.read(bias, n);
  C mean = 0, squares = 0;
  if (centred) {
    row.each(n, [&](C& value, int, int) { mean += value; });
    mean = combine_warp(mean, Plus{}) / static_cast<C>(n);
  }
  row.each(n, [&](C& value, int, int) {
    value -= mean;
    squares += value * value;
  });
  squares = combine_warp(squares, Plus{});
  const C factor = C(1) / std::sqrt(squares / static_cast<C>(n) + static_cast<C>(epsilon));
  row.each(n, [&](C& value, int p, int i) {
    value = value * factor * factors.values[p][i];
    if (bias) value += terms.values[p][i];
  });
  row.write(y + at * n, n);
}

/// y = exp(x - max) / sum, or (x - max) - log(sum).
template <int kWarps, class T>
__global__ void softmax_rows(const T* x, T* y, int64_t rows, int64_t n, bool log) {
  using C = compute_t<T>;
  C* const shared = shared_memory<C>();
  const int64_t row = row_index<kWarps>();
  if (row >= rows) return;  // a whole warp, or a whole block
  x += row * n, y += row * n;
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) max = maximum(static_cast<C>(load(x[i])), max);
  max = combine_block<kWarps>(max, Larger<C>{}, shared);
  C sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) sum += std::exp(load(x[i]) - max);
  sum = combine_block<kWarps>(sum, Plus{}, shared);
  const C scale = log ? std::log(sum) : C(1) / sum;
  for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) {
    const C shifted = load(x[i]) - max;
    y[i] = cast<T>(log ? shifted - scale : std::exp(shifted) * scale);
  }
}

/// One thread for each line; its elements are `inner` apart.
template <class T>
__global__ void softmax_lines(const T* x, T* y, int64_t lines, int64_t n, int64_t inner, bool log) {
  using C = compute_t<T>;
  for (int64_t line = first_element(); line < lines; line += element_step()) {
    const int64_t start = line / inner * n * inner + line % inner;
    C max = -std::numeric_limits<C>::infinity(), sum = 0;
    for (int64_t i = 0; i < n; ++i) max = maximum(static_cast<C>(load(x[start + i * inner])), max);
    for (int64_t i = 0; i < n; ++i) sum += std::exp(load(x[start + i * inner]) - max);
    for (int64_t i = 0; i < n; ++i) {
      const C shifted = load(x[start + i * inner]) - max;
      y[start + i * inner] = cast<T>(log ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }
}

/// y = (x - mean) / sqrt(var + epsilon) * scale + bias; around 0 where it is not `centred`. `bias` may be null.
template <int kWarps, class T>
__global__ void norm_rows(const T* x, const T* scale, const T* bias, T* y, int64_t rows, int64_t n, float epsilon, bool centred) {
  using C = compute_t<T>;
  C* const shared = shared_memory<C>();
  const int64_t row = row_index<kWarps>();
  if (row >= rows) return;
  x += row * n, y += row * n;
  C mean = 0;
  if (centred) {
    for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) mean += load(x[i]);
    mean = combine_block<kWarps>(mean, Plus{}, shared) / static_cast<C>(n);
  }
  C squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) {
    const C d = load(x[i]) - mean;
    squares += d * d;
  }
  squares = combine_block<kWarps>(squares, Plus{}, shared);
  const C factor = C(1) / std::sqrt(squares / static_cast<C>(n) + static_cast<C>(epsilon));
  for (int64_t i = threadIdx.x; i < n; i += 32 * kWarps) {
    const C normal = (load(x[i]) - mean) * factor * load(scale[i]);
    y[i] = cast<T>(bias ? normal + load(bias[i]) : normal);
  }
}

/// Shared memory for the partial results of a long row's warps.
template <class T>
constexpr size_t kShared = kLongWarps * sizeof(compute_t<T>);

template <class T>
Fault run_norm(const Stream& stream, const T* x, const T* scale, const T* bias, T* y, int64_t rows, int64_t n, float epsilon,
               bool centred) {
  if (can_be_held(n, {x, scale, bias, static_cast<const T*>(y)}))
    return launch(stream, row_grid<1>(rows, 0), norm_held<T>, x, scale, bias, y, rows, n, epsilon, centred);
  if (n <= kWarpRow) return launch(stream, row_grid<1>(rows, 0), norm_rows<1, T>, x, scale, bias, y, rows, n, epsilon, centred);
  return launch(stream, row_grid<kLongWarps>(rows, kShared<T>), norm_rows<kLongWarps, T>, x, scale, bias, y, rows, n, epsilon, centred);
}

template <class T>
Fault run_softmax(const Stream& stream, const T* x, T* y, const ref::AxisView& axis, bool log) {
  const auto [outer, n, inner] = axis;
  if (inner != 1) return launch(stream, {blocks_for(outer * inner, 256), 256}, softmax_lines<T>, x, y, outer * inner, n, inner, log);
  if (can_be_held(n, {x, static_cast<const T*>(y)})) return launch(stream, row_grid<1>(outer, 0), softmax_held<T>, x, y, outer, n, log);
  if (n <= kWarpRow) return launch(stream, row_grid<1>(outer, 0), softmax_rows<1, T>, x, y, outer, n, log);
  return launch(stream, row_grid<kLongWarps>(outer, kShared<T>), softmax_rows<kLongWarps, T>, x, y, outer, n, log);
}

/// x, scale, bias? all of one type.
Prepared prepare_norm(const OpDesc& desc, int64_t axis, float epsilon, bool centred, std::string& why) {
  const Shape& shape = desc.inputs[0].shape;
  const int64_t first = ref::resolve_axis(axis, shape.rank());
  if (first < 0) return refuse(why, "the axis is out of range");
  const auto at = static_cast<size_t>(first);
  const int64_t rows = product(shape, 0, at), n = product(shape, at, shape.rank());
  for (size_t i = 1; i < desc.inputs.size(); ++i) {
    if (desc.inputs[i].shape.elements() != n) return refuse(why, "scale and bias need one value for each element of a row");
  }
  if (!ref::one_dtype(desc) || desc.outputs.size() != 1) return refuse(why, "operands differ in dtype, or statistics are asked for");
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([rows, n, epsilon, centred](Stream& stream, Inputs in, Outputs out) -> Fault {
      return run_norm(stream, in[0].as<const T>(), in[1].as<const T>(), operand_as<T>(in, 2), out[0].as<T>(), rows, n, epsilon, centred);
    });
  });
}

}  // namespace

Prepared prepare_softmax(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Softmax op = std::get<Softmax>(desc.op);
  const Shape& shape = desc.inputs[0].shape;
  const int64_t axis = ref::resolve_axis(op.axis, shape.rank());
  if (axis < 0) return refuse(why, "the axis is out of range");
  const ref::AxisView view(shape, static_cast<size_t>(axis));
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([view, log = op.log](Stream& stream, Inputs in, Outputs out) -> Fault {
      return run_softmax(stream, in[0].as<const T>(), out[0].as<T>(), view, log);
    });
  });
}

Prepared prepare_layer_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  const LayerNorm op = std::get<LayerNorm>(desc.op);
  return prepare_norm(desc, op.axis, op.epsilon, true, why);
}

Prepared prepare_rms_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  return prepare_norm(desc, op.attributes.integer("axis", -1), static_cast<float>(op.attributes.number("epsilon", 1e-5)), false, why);
}

}  // namespace serin::kernels::cuda
