// lines.cu: LpNormalization and Hardmax along an axis, LRN across channels. A warp takes a line; where lines lie side by side in memory, each thread takes one.

#include "kernels/reduction.h"

#include "kernels/cuda/block.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

constexpr int kLanes = 32, kRows = 4;  // of a warp; warps of a block
constexpr int kThreads = kLanes * kRows;

/// What f.one() makes of the elements of each line, joined; then y = f.result(x, place, all of it).
template <bool kWarp, class T, class F>
__global__ void go_along_lines(F f, AxisView axis, const T* x, T* y) {
  const int64_t line = kWarp ? static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y : first_element();
  if (line >= axis.outer * axis.inner) return;  // a whole warp, or one thread that shares nothing
  const int64_t first = axis.at(line / axis.inner, 0, line % axis.inner), step = kWarp ? kLanes : 1, begin = kWarp ? threadIdx.x : 0;
  auto state = f.none();
  for (int64_t i = begin; i < axis.size; i += step) state = f(state, f.one(load(x[first + i * axis.inner]), i));
  if constexpr (kWarp) state = combine_warp(state, f);
  for (int64_t i = begin; i < axis.size; i += step)
    y[first + i * axis.inner] = cast<T>(f.result(load(x[first + i * axis.inner]), i, state));
}

/// x / norm(x); where the norm is 0, 0.
template <class C>
struct Normalised {
  bool squares;
  __device__ C none() const { return 0; }
  __device__ C one(C x, int64_t) const { return squares ? x * x : std::fabs(x); }
  __device__ C operator()(C a, C b) const { return a + b; }
  __device__ C result(C x, int64_t, C sum) const { return sum == 0 ? C(0) : x / (squares ? std::sqrt(sum) : sum); }
};

/// 1 for the first of the largest, else 0. NaN is no larger than anything, and nothing is larger than a NaN that comes first.
template <class C>
struct FirstLargest {
  using State = Best<C>;
  __device__ State none() const { return {}; }
  __device__ State one(C x, int64_t i) const {
    constexpr C kInfinity = std::numeric_limits<C>::infinity();
    return {i, x == x ? x : i == 0 ? kInfinity : -kInfinity};
  }
  __device__ State operator()(State a, State b) const { return better_of(a, b, false, false); }
  __device__ C result(C, int64_t i, State best) const { return i == best.at ? C(1) : C(0); }
};

template <class T, class F>
Prepared along(const AxisView& axis, F f) {
  return make_kernel([axis, f](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t lines = axis.outer * axis.inner;
    if (axis.inner == 1)
      return launch(stream, {blocks_for(lines, kRows), dim3(kLanes, kRows)}, go_along_lines<true, T, F>, f, axis, in[0].as<const T>(),
                    out[0].as<T>());
    return launch(stream, {blocks_for(lines, kThreads), kThreads}, go_along_lines<false, T, F>, f, axis, in[0].as<const T>(),
                  out[0].as<T>());
  });
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels) ^ beta; x [n, c, spatial].
struct Response {
  int64_t elements, channels, before, after;
  Division spatial, of_channels;
  double alpha_by_size, beta, bias;
};

template <class T>
__global__ void normalise_response(Response r, const T* x, T* y) {
  using C = compute_t<T>;
  for (int64_t i = first_element(); i < r.elements; i += element_step()) {
    const int64_t channel = r.of_channels.remainder(r.spatial.quotient(i));
    C squares = 0;
    const int64_t first = channel < r.before ? -channel : -r.before, behind = r.channels - 1 - channel;
    for (int64_t k = first; k <= (behind < r.after ? behind : r.after); ++k) {
      const C value = load(x[i + k * r.spatial.d]);
      squares += value * value;
    }
    y[i] = cast<T>(load(x[i]) / std::pow(static_cast<C>(r.bias) + static_cast<C>(r.alpha_by_size) * squares, static_cast<C>(r.beta)));
  }
}

std::optional<AxisView> axis_of(const OpDesc& desc, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const int64_t axis = ref::resolve_axis(std::get<Generic>(desc.op).attributes.integer("axis", -1), x.rank());
  if (axis < 0) return why = "axis is out of range", std::nullopt;
  return AxisView(x, static_cast<size_t>(axis));
}

}  // namespace

Prepared prepare_lp_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto axis = axis_of(desc, why);
  const int64_t p = std::get<Generic>(desc.op).attributes.integer("p", 2);
  if (!axis || (p != 1 && p != 2)) return refuse(why, "the axis is out of range, or p is neither 1 nor 2");
  return ref::for_floats(desc.inputs[0].dtype, why,
                         [&]<class T>(Element<T>) -> Prepared { return along<T>(*axis, Normalised<compute_t<T>>{p == 2}); });
}

Prepared prepare_hardmax(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto axis = axis_of(desc, why);
  if (!axis) return nullptr;
  return ref::for_floats(desc.inputs[0].dtype, why,
                         [&]<class T>(Element<T>) -> Prepared { return along<T>(*axis, FirstLargest<compute_t<T>>{}); });
}

Prepared prepare_lrn(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape& x = desc.inputs[0].shape;
  const int64_t size = attributes.integer("size", 0), n = x.elements();
  if (x.rank() < 2 || size < 1) return refuse(why, "the input has no channels, or size is less than 1");
  const Response response{n,
                          x[1],
                          (size - 1) / 2,
                          size / 2,
                          Division(product(x, 2, x.rank()), n),
                          Division(x[1], n),
                          attributes.number("alpha", 1e-4F) / static_cast<double>(size),
                          attributes.number("beta", 0.75),
                          attributes.number("bias", 1)};
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([response](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(response.elements, kThreads), kThreads}, normalise_response<T>, response, in[0].as<const T>(),
                    out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
