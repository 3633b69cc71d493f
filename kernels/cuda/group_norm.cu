// group_norm.cu: InstanceNormalization and GroupNormalization: x [n, c, ...] is normalised over its spatial axes and the channels of a group; in an instance
// norm each channel is a group.
//
// A group lies in one piece. A block reads it three times, from the second time on out of a cache: mean, squares around the mean, result. Where groups are few
// and long, several blocks share one: each finds the moments of its part, a second launch joins them (Chan, Golub and LeVeque, "Updating formulae and a
// pairwise algorithm for computing sample variances", 1979) and writes.

#include "kernels/cuda/block.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

/// Of some elements: how many, their mean, the sum of squares around it.
template <class C>
struct Moments {
  C count = 0, mean = 0, squares = 0;
};

struct Join {
  template <class C>
  __device__ Moments<C> operator()(Moments<C> a, Moments<C> b) const {
    const C count = a.count + b.count;
    if (count == 0) return a;
    const C distance = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
  }
};

/// Group g is `length` elements from g * length on, in parts of `per_part`. Channel c has parameter c * parameters / channels: one each, or one for a group.
struct Groups {
  int64_t groups, length, channels, channels_of_group, parameters, parts, per_part;
  Division spatial;
  float epsilon;
};

template <class T>
__device__ Moments<compute_t<T>> moments_of(const T* x, int64_t count, compute_t<T>* shared) {
  using C = compute_t<T>;
  C sum = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) sum += load(x[i]);
  const C mean = combine_block<kBlockWarps>(sum, Plus{}, shared) / static_cast<C>(count);
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
    const C distance = load(x[i]) - mean;
    squares += distance * distance;
  }
  return {static_cast<C>(count), mean, combine_block<kBlockWarps>(squares, Plus{}, shared)};
}

__device__ inline int64_t part_length(const Groups& g) {
  const int64_t rest = g.length - static_cast<int64_t>(blockIdx.y) * g.per_part;
  return rest < g.per_part ? rest : g.per_part;
}

template <class T>
__global__ void find_moments(Groups g, const T* x, Moments<compute_t<T>>* moments) {
  const int64_t group = blockIdx.x, part = blockIdx.y;
  const auto found = moments_of(x + group * g.length + part * g.per_part, part_length(g), shared_memory<compute_t<T>>());
  if (threadIdx.x == 0) moments[group * g.parts + part] = found;
}

/// `parts`: the moments of all parts of all groups; null: a group is one part, and its moments are found here.
template <class T>
__global__ void normalise_groups(Groups g, const T* x, const T* scale, const T* bias, const Moments<compute_t<T>>* parts, T* y) {
  using C = compute_t<T>;
  const int64_t group = blockIdx.x, begin = static_cast<int64_t>(blockIdx.y) * g.per_part, count = part_length(g);
  Moments<C> moments;
  if (parts) {
    for (int64_t i = 0; i < g.parts; ++i) moments = Join{}(moments, parts[group * g.parts + i]);
  } else {
    moments = moments_of(x + group * g.length, g.length, shared_memory<C>());
  }
  const C factor = C(1) / std::sqrt(moments.squares / static_cast<C>(g.length) + static_cast<C>(g.epsilon));
  const int64_t first_channel = group * g.channels_of_group % g.channels;
  x += group * g.length + begin, y += group * g.length + begin;
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
    const int64_t parameter = (first_channel + g.spatial.quotient(begin + i)) * g.parameters / g.channels;
    y[i] = cast<T>((load(x[i]) - moments.mean) * factor * load(scale[parameter]) + load(bias[parameter]));
  }
}

}  // namespace

Prepared prepare_group_norm(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2 || x.elements() == 0) return refuse(why, "the input must have rank 2 or more, and elements");
  if (!ref::one_dtype(desc)) return refuse(why, "operands differ in dtype");
  const int64_t channels = x[1], groups = op.name == "InstanceNormalization" ? channels : op.attributes.integer("num_groups", 0);
  const int64_t parameters = desc.inputs[1].shape.elements();
  if (groups < 1 || channels % groups != 0 || parameters < 1 || channels % parameters != 0 || desc.inputs[2].shape.elements() != parameters)
    return refuse(why, "groups, scale and bias must fit the channels");
  const int64_t spatial = product(x, 2, x.rank()), length = channels / groups * spatial;
  constexpr int64_t kEnoughBlocks = 512, kPart = 8192;  // blocks that keep a device busy; elements that are worth a block
  const int64_t parts = std::clamp<int64_t>(std::min(kEnoughBlocks / (x[0] * groups), length / kPart), 1, 64);
  const Groups g{x[0] * groups,
                 length,
                 channels,
                 channels / groups,
                 parameters,
                 parts,
                 ceil_div(length, parts),
                 Division(spatial, length),
                 static_cast<float>(op.attributes.number("epsilon", 1e-5))};
  return ref::for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    using M = Moments<compute_t<T>>;
    return make_kernel(
        [g](Stream& stream, Inputs in, Outputs out) -> Fault {
          const Grid grid{dim3(static_cast<unsigned>(g.groups), static_cast<unsigned>(g.parts)), kBlockThreads,
                          kBlockWarps * sizeof(compute_t<T>)};
          auto* const moments = g.parts == 1 ? nullptr : reinterpret_cast<M*>(stream.scratch);
          if (moments) {
            if (Fault fault = launch(stream, grid, find_moments<T>, g, in[0].as<const T>(), moments)) return fault;
          }
          return launch(stream, grid, normalise_groups<T>, g, in[0].as<const T>(), in[1].as<const T>(), in[2].as<const T>(), moments,
                        out[0].as<T>());
        },
        {.scratch_bytes = parts == 1 ? 0 : static_cast<size_t>(g.groups * parts) * sizeof(M)});
  });
}

}  // namespace serin::kernels::cuda
