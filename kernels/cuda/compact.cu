// compact.cu: NonZero and Compress: what is kept of many elements, in their order. The elements are cut into at most 1,024 parts; one kernel counts what each
// part keeps, a second one adds up the parts before its own and writes where everything goes. Both look at each element: its place cannot be known sooner.

#include "kernels/cuda/index.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rank.h"
#include "kernels/cuda/sized_rows.h"
#include "kernels/cuda/sizes.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/axes.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

constexpr int64_t kMostParts = 1024;

/// A block takes a part of `each` elements, a multiple of its threads.
struct Parts {
  int64_t elements = 0, each = 0;
  unsigned count = 0;

  explicit Parts(int64_t n) : elements(n), each(std::max<int64_t>(ceil_div(n, kMostParts * kBlockThreads), kLeast) * kBlockThreads) {
    count = blocks_for(n, each);
  }
  /// Of n elements or of fewer: 1,048,576 are cut into 1,024 parts, one more into 820, since each part grows by a whole round of its threads.
  static int64_t most(int64_t n) { return std::min(ceil_div(n, kLeast * kBlockThreads), kMostParts); }

 private:
  static constexpr int64_t kLeast = 4;
};

struct Shared {
  uint32_t of_warp[32];
  Counted counted[kBlockWarps];
};

/// `keeps(i)`: whether element i is kept.
template <class F>
__global__ void count_kept(Parts parts, F keeps, uint32_t* counts) {
  const int64_t first = blockIdx.x * parts.each;
  uint32_t own = 0;
  for (int64_t i = first + threadIdx.x; i < first + parts.each && i < parts.elements; i += kBlockThreads) own += keeps(i) ? 1 : 0;
  own = combine_block<kBlockWarps>(own, Plus(), shared_memory<Shared>()->of_warp);
  if (threadIdx.x == 0) counts[blockIdx.x] = own;
}

/// `write(i, rank, total)`: element i is the rank-th that is kept.
template <class F, class W>
__global__ void write_kept(Parts parts, F keeps, W write, const uint32_t* counts, int64_t* size) {
  auto& shared = *shared_memory<Shared>();
  const Counted counted = count_around<kBlockWarps>(counts, gridDim.x, blockIdx.x, shared.counted);
  if (blockIdx.x == 0 && threadIdx.x == 0) *size = counted.total;
  const int64_t first = blockIdx.x * parts.each;
  int64_t before = counted.before;
  for (int64_t start = first; start < first + parts.each && start < parts.elements; start += kBlockThreads) {
    const int64_t i = start + threadIdx.x;
    const bool kept = i < parts.elements && keeps(i);
    uint32_t total;
    const int64_t rank = before + rank_in_block(kept, shared.of_warp, total);
    before += total;
    if (kept) write(i, rank, counted.total);
  }
}

template <class F, class W>
Fault compact(const Stream& stream, int64_t elements, F keeps, W write, int64_t* size) {
  const Parts parts(elements);
  auto* const counts = reinterpret_cast<uint32_t*>(stream.scratch);
  const Grid grid{parts.count, kBlockThreads, sizeof(Shared)};
  if (Fault fault = launch(stream, grid, count_kept<F>, parts, keeps, counts)) return fault;
  return launch(stream, grid, write_kept<F, W>, parts, keeps, write, counts, size);
}

template <class T>
struct IsSet {
  const T* x;
  __device__ bool operator()(int64_t i) const { return load(x[i]) != compute_t<T>(0); }
};

/// y [rank, count]: the indices of an element are a column.
struct Coordinates {
  int rank;
  Division dims[Shape::kMaxRank];
  int64_t* y;

  __device__ void operator()(int64_t i, int64_t column, int64_t columns) const {
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t next = dims[axis].quotient(i);
      y[axis * columns + column] = i - next * dims[axis].d;
      i = next;
    }
  }
};

/// Of a condition longer than the axis nothing may be set that is not there.
struct IsChosen {
  const bool* condition;
  int64_t size;
  IndexFaults faults;
  int axis;
  __device__ bool operator()(int64_t i) const {
    if (!condition[i] || i < size) return condition[i];
    faults.report(i, axis);
    return false;
  }
};

constexpr uint32_t kLeftOut = UINT32_MAX;

struct Ranks {
  uint32_t* ranks;
  __device__ void operator()(int64_t i, int64_t rank, int64_t) const { ranks[i] = static_cast<uint32_t>(rank); }
};

__global__ void leave_out_all(uint32_t* ranks, int64_t n) {
  for (int64_t i = first_element(); i < n; i += element_step()) ranks[i] = kLeftOut;
}

/// x [outer, size, inner] -> y [outer, kept, inner].
template <class T>
__global__ void move_chosen(AxisView axis, Division size, Division inner, int64_t elements, const T* x, const uint32_t* ranks,
                            const int64_t* kept, T* y) {
  const int64_t rows = *kept;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t row = inner.quotient(i), outer = size.quotient(row);
    const uint32_t rank = ranks[row - outer * axis.size];
    if (rank != kLeftOut) y[(outer * rows + rank) * axis.inner + i - row * axis.inner] = x[i];
  }
}

/// A kernel that is prepared for `elements` may be run for fewer.
size_t bytes_of_counts(int64_t elements) { return static_cast<size_t>(Parts::most(elements) + 1) * sizeof(uint32_t); }

}  // namespace

Prepared prepare_non_zero(const OpDesc& desc, PrepareContext&, std::string& why) {
  return ref::visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return ref::refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      const auto run = [](Stream& stream, Inputs in, Outputs out) -> Fault {
        const int64_t elements = in[0].elements();
        if (elements == 0) return leave_empty(stream, out);
        Coordinates to{.rank = static_cast<int>(in[0].shape.rank()), .dims = {}, .y = out[0].as<int64_t>()};
        for (size_t axis = 0; axis < in[0].shape.rank(); ++axis) to.dims[axis] = Division(in[0].shape[axis], elements);
        return compact(stream, elements, IsSet<T>{in[0].as<const T>()}, to, size_of_result(out));
      };
      return make_kernel(run, {.scratch_bytes = bytes_of_counts(desc.inputs[0].shape.elements())});
    }
  });
}

Prepared prepare_compress(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const bool flat = !attributes.has("axis");
  const int64_t axis = flat ? 0 : ref::resolve_axis(attributes.integer("axis", 0), desc.inputs[0].shape.rank());
  if (axis < 0) return refuse(why, "axis out of range");
  if (desc.inputs[1].dtype != DType::kBool) return refuse(why, "the condition must be bool");
  const auto seen = [flat](const Shape& shape) { return flat ? Shape{shape.elements()} : shape; };
  const Shape x = seen(desc.inputs[0].shape);
  const int64_t size = x[static_cast<size_t>(axis)], given = desc.inputs[1].shape.elements();
  if (std::max(size, given) >= kLeftOut) return refuse(why, "an axis of more than 32 bits");
  const size_t counts = bytes_of_counts(given);
  const KernelTraits traits{.scratch_bytes = counts + static_cast<size_t>(std::max(size, given)) * sizeof(uint32_t)};
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    const auto run = [seen, axis, counts](Stream& stream, Inputs in, Outputs out) -> Fault {
      const AxisView view(seen(in[0].shape), static_cast<size_t>(axis));
      const int64_t choices = in[1].elements();
      if (choices == 0) return leave_empty(stream, out);
      auto* const ranks = reinterpret_cast<uint32_t*>(stream.scratch + counts);
      const int64_t slots = std::max(view.size, choices);
      const IsChosen chosen{in[1].as<const bool>(), view.size, IndexFaults(stream), static_cast<int>(axis)};
      Fault fault = launch(stream, {blocks_for(slots, kBlockThreads), kBlockThreads}, leave_out_all, ranks, slots);
      if (!fault) fault = compact(stream, choices, chosen, Ranks{ranks}, size_of_result(out));
      if (fault) return fault;
      return in_pieces<T>({view.inner}, {in[0].data, out[0].data}, [&]<class U>(Element<U>, int64_t of_piece) {
        AxisView pieces = view;
        pieces.inner /= of_piece;
        const int64_t elements = view.outer * view.size * pieces.inner;
        return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, move_chosen<U>, pieces, Division(view.size, elements),
                      Division(pieces.inner, elements), elements, in[0].as<const U>(), ranks, size_of_result(out), out[0].as<U>());
      });
    };
    return make_indexed(x, make_kernel(run, traits));
  });
}

}  // namespace serin::kernels::cuda
