// reduce.cu: Reduce and ReduceLogSumExp over any axes, ArgMax.
//
// The kept axes number the results, the reduced ones the terms of each: two spaces over the same memory. Where the last axis is reduced a warp takes a
// result and its lanes neighbouring terms, or a block where the terms are many; where it is kept, the lanes take neighbouring results, and the warps of a
// block share the terms of each; a thread takes 16 bytes of them where it can. In all cases a warp reads runs of memory. Where that leaves most of a device idle (few results of many terms) the terms are
// cut into parts: one launch reduces the parts, another what came of them. What an element does to a result is a Reducer's: Folded,
// LogSumExp, Extreme.

#include "kernels/reduction.h"

#include "kernels/cuda/block.h"
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

template <class T>
struct Folded {
  using Out = T;
  using State = sum_t<T>;
  ReduceFn fn;

  __device__ State none() const { return neutral<State>(fn); }
  __device__ State one(T x, int64_t) const { return reduced_term(fn, static_cast<State>(load(x))); }
  __device__ State operator()(State a, State b) const { return combined(fn, a, b); }
  __device__ Out finish(State state, int64_t count) const { return reduced<T>(fn, state, count); }
};

template <class T>
struct Extreme {
  using Out = int64_t;
  using State = Best<compute_t<T>>;
  bool min, last;

  __device__ State none() const { return {}; }
  __device__ State one(T x, int64_t i) const { return {i, load(x)}; }
  __device__ State operator()(State a, State b) const { return better_of(a, b, min, last); }
  __device__ Out finish(State state, int64_t) const { return state.at; }
};

/// log(sum(exp(x))), around the largest: sums of others are rescaled when a larger one comes.
template <class T>
struct LogSumExp {
  using Out = T;
  using C = compute_t<T>;
  struct State {
    C largest, sum;  ///< the sum of exp(x - shift(largest))
  };

  __device__ static C shift(C largest) { return std::isinf(largest) ? C(0) : largest; }
  __device__ static C rescaled(State state, C to) { return state.sum == 0 ? C(0) : state.sum * std::exp(shift(state.largest) - to); }
  __device__ State none() const { return {-std::numeric_limits<C>::infinity(), 0}; }
  __device__ State one(T x, int64_t) const { return {load(x), std::exp(load(x) - shift(load(x)))}; }
  __device__ State operator()(State a, State b) const {
    const C largest = maximum(a.largest, b.largest), to = shift(largest);
    return {largest, rescaled(a, to) + rescaled(b, to)};
  }
  __device__ Out finish(State state, int64_t) const { return cast<T>(shift(state.largest) + std::log(state.sum)); }
};

/// The terms of each result and how they are cut: part p has those from p * per_part on. Partial results go to `partial` [results, parts], if there is one.
template <class R>
struct Call {
  Space<1> kept, reduced;
  int64_t parts = 1, per_part = 0;
  typename R::State* partial = nullptr;
  typename R::Out* y = nullptr;

  __device__ int64_t first() const { return static_cast<int64_t>(blockIdx.y) * per_part; }
  __device__ int64_t end() const { return reduced.elements < first() + per_part ? reduced.elements : first() + per_part; }
  __device__ void store(const R& reducer, int64_t result, typename R::State state) const {
    if (partial)
      partial[result * parts + blockIdx.y] = state;
    else
      y[result] = reducer.finish(state, reduced.elements);
  }
};

constexpr int kShortRows = 4;       // warps, and so results, of a block where a warp takes a result
constexpr int kLongWarps = 8;       // warps of a block that takes one result
constexpr int64_t kWarpRow = 2048;  // terms from which a result takes a block
constexpr int kSharers = 8;         // warps that share the terms of 32 results

/// kWarps = 1: a warp for each result; else a block.
template <int kWarps, class T, class R>
__global__ void reduce_rows(R reducer, const T* x, Call<R> call) {
  const int64_t result = kWarps == 1 ? static_cast<int64_t>(blockIdx.x) * kShortRows + threadIdx.y : static_cast<int64_t>(blockIdx.x);
  if (result >= call.kept.elements) return;  // a whole warp, or a whole block
  int64_t start[1], at[1];
  call.kept.locate(result, start);
  auto state = reducer.none();
  for (int64_t i = call.first() + threadIdx.x; i < call.end(); i += int64_t{32} * kWarps) {
    call.reduced.locate(i, at);
    state = reducer(state, reducer.one(x[start[0] + at[0]], i));
  }
  state = combine_block<kWarps>(state, reducer, shared_memory<typename R::State>());
  if (threadIdx.x == 0) call.store(reducer, result, state);
}

template <class T, class R>
__global__ void reduce_columns(R reducer, const T* x, Call<R> call) {
  auto* const others = shared_memory<typename R::State>();  // [kSharers, 32]
  const int64_t result = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  auto state = reducer.none();
  if (result < call.kept.elements) {
    int64_t start[1], at[1];
    call.kept.locate(result, start);
    for (int64_t i = call.first() + threadIdx.y; i < call.end(); i += kSharers) {
      call.reduced.locate(i, at);
      state = reducer(state, reducer.one(x[start[0] + at[0]], i));
    }
  }
  others[threadIdx.y * 32 + threadIdx.x] = state;
  __syncthreads();
  if (threadIdx.y != 0 || result >= call.kept.elements) return;
  for (int i = 1; i < kSharers; ++i) state = reducer(state, others[i * 32 + static_cast<int>(threadIdx.x)]);
  call.store(reducer, result, state);
}

/// x [outer, terms, inner] over its terms: lanes take packs of neighbouring results, lines take terms. Blocks of whole lines.
struct Middle {
  int64_t outer = 0, terms = 0, inner = 0;
};

constexpr int kTermsAtOnce = 4;  // are requested together

template <int kPack, class T, class R>
__global__ void __launch_bounds__(1024) reduce_middle(R reducer, Middle m, const T* x, typename R::Out* y) {
  using State = typename R::State;
  auto* const others = shared_memory<State>();  // [lines, lanes, kPack]
  const int lanes = static_cast<int>(blockDim.x), lines = static_cast<int>(blockDim.y), line = static_cast<int>(threadIdx.y);
  const int64_t result = (static_cast<int64_t>(blockIdx.x) * lanes + threadIdx.x) * kPack;
  const bool there = result < m.inner;
  const T* const from = x + blockIdx.y * m.terms * m.inner + (there ? result : 0);
  State states[kPack];
#pragma unroll
  for (int k = 0; k < kPack; ++k) states[k] = reducer.none();
  for (int64_t first = line; there && first < m.terms; first += int64_t{kTermsAtOnce} * lines) {
    Pack<T, kPack> packs[kTermsAtOnce];
#pragma unroll
    for (int a = 0; a < kTermsAtOnce; ++a) {
      const int64_t term = first + int64_t{a} * lines;
      if (term < m.terms) packs[a] = load_pack<kPack>(from + term * m.inner);
    }
#pragma unroll
    for (int a = 0; a < kTermsAtOnce; ++a) {
      const int64_t term = first + int64_t{a} * lines;
      if (term >= m.terms) continue;
#pragma unroll
      for (int k = 0; k < kPack; ++k) states[k] = reducer(states[k], reducer.one(packs[a].values[k], term));
    }
  }
  State* const own = others + (line * lanes + static_cast<int>(threadIdx.x)) * kPack;
  for (int rest = lines; rest > 1;) {
    const int half = (rest + 1) / 2;
#pragma unroll
    for (int k = 0; k < kPack; ++k) own[k] = states[k];
    __syncthreads();
    if (line + half < rest) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) states[k] = reducer(states[k], own[half * lanes * kPack + k]);
    }
    __syncthreads();
    rest = half;
  }
  if (line != 0 || !there) return;
#pragma unroll
  for (int k = 0; k < kPack; ++k) y[blockIdx.y * m.inner + result + k] = reducer.finish(states[k], m.terms);
}

/// A warp for each result, over what its parts came to.
template <class R>
__global__ void reduce_parts(R reducer, Call<R> call) {
  const int64_t result = static_cast<int64_t>(blockIdx.x) * kShortRows + threadIdx.y;
  if (result >= call.kept.elements) return;
  auto state = reducer.none();
  for (int64_t part = threadIdx.x; part < call.parts; part += 32) state = reducer(state, call.partial[result * call.parts + part]);
  state = combine_warp(state, reducer);
  if (threadIdx.x == 0) call.y[result] = reducer.finish(state, call.reduced.elements);
}

/// How a reduction is launched; the same for every run.
struct Plan {
  Space<1> kept, reduced;
  bool last = false;  ///< the last axis of more than one element is reduced
  int64_t parts = 1;
  Middle middle;  ///< if its terms are neither first nor last; otherwise empty

  Plan(const Shape& x, const std::vector<int64_t>& axes) {
    Shape kept_shape = x, reduced_shape = x;
    for (size_t axis = 0; axis < x.rank(); ++axis) {
      const bool is_reduced = std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end();
      (is_reduced ? kept_shape : reduced_shape)[axis] = 1;
      if (x[axis] != 1) last = is_reduced;
    }
    kept = Space<1>(kept_shape, {row_major_strides(x)});
    reduced = Space<1>(reduced_shape, {row_major_strides(x)});
    if (kept.rank <= 2 && reduced.rank == 1 && !last && reduced.elements > 1 && kept.elements > 0) {
      const int64_t inner = kept.dims[kept.rank - 1], outer = kept.elements / inner;
      const bool neighbours = kept.strides[0][kept.rank - 1] == 1 && reduced.strides[0][0] == inner;
      if (neighbours && (kept.rank == 1 ? outer == 1 : kept.strides[0][0] == inner * reduced.elements) && outer <= 65535)
        middle = {outer, reduced.elements, inner};
    }
    constexpr int64_t kEnoughBlocks = 512, kFewTerms = 2048;  // blocks that keep a device busy; terms that are worth a part
    const int64_t blocks = ceil_div(kept.elements, !last ? 32 : is_long() ? 1 : kShortRows);
    if (blocks > 0) parts = std::clamp<int64_t>(std::min(kEnoughBlocks / blocks, reduced.elements / kFewTerms), 1, 1024);
  }
  /// By packs, where these fit. What is cut into parts is better off as it is: few results of very many terms.
  template <class T, class R>
  bool takes_packs(const T* x) const {
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    return parts == 1 && kPack > 1 && sizeof(typename R::State) <= 8 && middle.outer > 0 && middle.inner % kPack == 0 &&
           is_aligned<T, kPack>(x);
  }
  template <class T, class R>
  Fault run_middle(const Stream& stream, R reducer, const T* x, typename R::Out* y) const {
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    constexpr int64_t kShared = size_t{48} << 10, kState = kPack * static_cast<int64_t>(sizeof(typename R::State));
    // Blocks for every multiprocessor, of at least 32 neighbouring bytes, which is what memory gives at once.
    constexpr int64_t kEnoughBlocks = 128, kLeastLanes = 2, kMostLanes = 32;
    const int64_t packs = middle.inner / kPack, most = std::min<int64_t>(1024, kShared / kState);  // threads
    const int64_t slices = std::clamp(ceil_div(kEnoughBlocks, middle.outer), ceil_div(packs, kMostLanes), ceil_div(packs, kLeastLanes));
    const int64_t lanes = ceil_div(packs, slices), lines = std::clamp<int64_t>(ceil_div(middle.terms, kTermsAtOnce), 1, most / lanes);
    const Grid grid{dim3(static_cast<unsigned>(slices), static_cast<unsigned>(middle.outer)),
                    dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(lines)), static_cast<size_t>(lanes * lines * kState)};
    return launch(stream, grid, reduce_middle<kPack, T, R>, reducer, middle, x, y);
  }
  bool is_long() const { return reduced.elements >= kWarpRow; }

  template <class R>
  size_t scratch_bytes() const {
    return parts == 1 ? 0 : static_cast<size_t>(kept.elements * parts) * sizeof(typename R::State);
  }

  template <class T, class R>
  Fault run(const Stream& stream, R reducer, const T* x, typename R::Out* y) const {
    using State = typename R::State;
    if (takes_packs<T, R>(x)) return run_middle(stream, reducer, x, y);
    Call<R> call{kept, reduced, parts, ceil_div(reduced.elements, parts), nullptr, y};
    if (parts > 1) call.partial = reinterpret_cast<State*>(stream.scratch);
    const auto many = static_cast<unsigned>(parts);
    const dim3 warps(32, kShortRows);
    Fault fault;
    if (!last)
      fault = launch(stream, {dim3(blocks_for(kept.elements, 32), many), dim3(32, kSharers), kSharers * 32 * sizeof(State)},
                     reduce_columns<T, R>, reducer, x, call);
    else if (is_long())
      fault = launch(stream, {dim3(blocks_for(kept.elements, 1), many), 32 * kLongWarps, kLongWarps * sizeof(State)},
                     reduce_rows<kLongWarps, T, R>, reducer, x, call);
    else
      fault = launch(stream, {dim3(blocks_for(kept.elements, kShortRows), many), warps}, reduce_rows<1, T, R>, reducer, x, call);
    if (fault || parts == 1) return fault;
    return launch(stream, {blocks_for(kept.elements, kShortRows), warps}, reduce_parts<R>, reducer, call);
  }
};

template <class T, class R>
Prepared make_reduction(const Plan& plan, const R& reducer) {
  return make_kernel([plan, reducer](Stream& stream, Inputs in,
                                     Outputs out) { return plan.run(stream, reducer, in[0].as<const T>(), out[0].as<typename R::Out>()); },
                     {.scratch_bytes = plan.scratch_bytes<R>()});
}

}  // namespace

Prepared prepare_reduce(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Reduce>(desc.op);
  const Plan plan(desc.inputs[0].shape, op.axes);
  const bool of_bools = desc.inputs[0].dtype == DType::kBool && (op.fn == ReduceFn::kMax || op.fn == ReduceFn::kMin);
  if (of_bools) return make_reduction<bool>(plan, Folded<bool>{op.fn});
  return ref::for_numbers(desc.inputs[0].dtype, why,
                          [&]<class T>(Element<T>) -> Prepared { return make_reduction<T>(plan, Folded<T>{op.fn}); });
}

Prepared prepare_reduce_log_sum_exp(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  std::vector<int64_t> axes = std::get<Generic>(desc.op).attributes.integers("axes");
  if (has_operand(desc, 1)) {
    const TensorDesc& given = desc.inputs[1];
    if (!given.constant || given.dtype != DType::kInt64) return refuse(why, "the axes are computed");
    axes.assign(given.constant.as<int64_t>(), given.constant.as<int64_t>() + given.shape.elements());
  }
  for (int64_t& axis : axes) axis = ref::resolve_axis(axis, x.rank());
  if (std::ranges::find(axes, -1) != axes.end()) return refuse(why, "an axis is out of range");
  const Plan plan(x, axes);
  if (plan.kept.elements != desc.outputs[0].shape.elements()) return refuse(why, "the axes do not give the result's shape");
  return ref::for_floats(desc.inputs[0].dtype, why,
                         [&]<class T>(Element<T>) -> Prepared { return make_reduction<T>(plan, LogSumExp<T>{}); });
}

Prepared prepare_arg_max(const OpDesc& desc, PrepareContext&, std::string& why) {
  const ArgMax op = std::get<ArgMax>(desc.op);
  if (desc.inputs[0].shape[static_cast<size_t>(op.axis)] == 0) return refuse(why, "the axis has no elements");
  const Plan plan(desc.inputs[0].shape, {op.axis});
  return ref::for_numbers(desc.inputs[0].dtype, why,
                          [&]<class T>(Element<T>) -> Prepared { return make_reduction<T>(plan, Extreme<T>{op.min, op.last}); });
}

}  // namespace serin::kernels::cuda
