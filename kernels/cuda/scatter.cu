// scatter.cu: ScatterElements, ScatterND and TensorScatter: a copy of the data, into which updates are written, a thread for each element of them.
//
// Where several updates meet, a reduction joins them one by one, in whatever order they arrive; without a reduction ONNX asks for indices that do not meet, and
// where they do, any of them stays.

#include "kernels/scatter.h"

#include "kernels/cuda/fault.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

/// Takes the place of what is there.
struct Replace {
  template <class T>
  __device__ void operator()(T* at, T update) const {
    *at = update;
  }
};

/// The unsigned integer of T's size.
template <class T>
using bits_t = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

/// Joins what is there: compared and swapped as the aligned word that the element lies in, again where another thread was faster.
struct Combine {
  BinaryFn fn;

  template <class T>
  __device__ void operator()(T* at, T update) const {
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    using Bits = bits_t<T>;
    const auto address = reinterpret_cast<uintptr_t>(at);
    const unsigned shift = static_cast<unsigned>(address % sizeof(Word)) * 8;
    auto* const word = reinterpret_cast<Word*>(reinterpret_cast<char*>(at) - shift / 8);
    const Word mask = static_cast<Word>(~Word{0} >> (8 * (sizeof(Word) - sizeof(T)))) << shift;
    Word seen = *word;
    for (;;) {
      const T next = joined(fn, std::bit_cast<T>(static_cast<Bits>((seen & mask) >> shift)), update);
      const Word wanted = (seen & ~mask) | static_cast<Word>(static_cast<Word>(std::bit_cast<Bits>(next)) << shift);
      const Word before = atomicCAS(word, seen, wanted);
      if (before == seen) return;
      seen = before;
    }
  }
};

/// y[i, index[i, j, k], k] = update[i, j, k] for axis 1: `space` is that of the indices, where an index does not move along that axis.
template <class T, class I, class Put>
__global__ void scatter_elements(Put put, Space<1> space, const I* indices, const T* updates, T* y, int64_t size, int64_t step,
                                 IndexFaults faults, int axis) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t start[1];
    space.locate(i, start);
    const int64_t at = faults.resolve(indices[i], size, axis);
    if (at >= 0) put(y + start[0] + at * step, updates[i]);
  }
}

template <class T, class I, class Put>
__global__ void scatter_slices(Put put, IndexTuples tuples, Division slice, int64_t elements, const I* indices, const T* updates, T* y,
                               IndexFaults faults) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t tuple = slice.quotient(i), first = tuples.offset(indices + tuple * tuples.axes, faults);
    if (first >= 0) put(y + first + i - tuple * slice.d, updates[i]);
  }
}

/// A cache [batch, ..., size, inner] takes the rows of an update along that axis, from where the batch's index says on.
struct CacheRows {
  AxisView cache, update;
  Division inner, rows, outer_of_batch;
  int64_t elements;  ///< of the update
  int axis;
  bool circular;
};

template <class T, class I>
__global__ void scatter_rows(CacheRows rows, const I* starts, const T* updates, T* y, IndexFaults faults) {
  for (int64_t i = first_element(); i < rows.elements; i += element_step()) {
    const int64_t row = rows.inner.quotient(i), outer = rows.rows.quotient(row), j = row - outer * rows.update.size;
    const int64_t start = starts ? starts[rows.outer_of_batch.quotient(outer)] : 0;
    if (start < 0 || (!rows.circular && start > rows.cache.size - rows.update.size)) {
      faults.report(start, rows.axis);
      continue;
    }
    const int64_t at = rows.circular ? (start % rows.cache.size + j) % rows.cache.size : start + j;
    y[rows.cache.at(outer, at, i - row * rows.inner.d)] = updates[i];
  }
}

Fault copy_data(const Stream& stream, Inputs in, Outputs out) {
  if (in[0].data == out[0].data) return kOk;
  return fault_of(
      cudaMemcpyAsync(out[0].data, in[0].data, in[0].bytes(), cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream.queue)));
}

/// make(Element<T>{}, put): T of the elements' size where they are replaced, their own type where they are joined.
template <class F>
Prepared for_updates(const OpDesc& desc, std::string& why, F&& make) {
  Join join;
  if (!find_join(std::get<Generic>(desc.op).attributes.text("reduction", "none"), join)) return refuse(why, "the reduction is unknown");
  if (!join) return for_sizes(desc.outputs[0].dtype, why, [&](auto element) { return make(element, Replace{}); });
  return ref::visit_dtype(desc.outputs[0].dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (std::is_void_v<T>)
      return ref::refuse_dtype(why, desc.outputs[0].dtype);
    else
      return make(element, Combine{*join});
  });
}

}  // namespace

Prepared prepare_scatter_elements(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &indices = desc.inputs[1].shape;
  const int64_t axis = ref::resolve_axis(std::get<Generic>(desc.op).attributes.integer("axis", 0), x.rank());
  if (axis < 0 || indices.rank() != x.rank()) return refuse(why, "axis or rank of the indices does not fit");
  if (!(desc.inputs[2].shape == indices)) return refuse(why, "updates and indices differ in shape");
  const auto at = static_cast<size_t>(axis);
  for (size_t other = 0; other < x.rank(); ++other) {
    if (other != at && indices[other] > x[other]) return refuse(why, "the indices reach over the data");
  }
  Strides strides = row_major_strides(x);
  const int64_t step = std::exchange(strides[at], 0), size = x[at];
  const Space<1> space(indices, {strides});
  return for_updates(desc, why, [&]<class T, class Put>(Element<T>, Put put) -> Prepared {
    return for_indices(desc.inputs[1].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(x, make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
                            if (Fault fault = copy_data(stream, in, out)) return fault;
                            return launch(stream, {blocks_for(space.elements, kBlockThreads), kBlockThreads}, scatter_elements<T, I, Put>,
                                          put, space, in[1].as<const I>(), in[2].as<const T>(), out[0].as<T>(), size, step,
                                          IndexFaults(stream), static_cast<int>(axis));
                          }));
    });
  });
}

Prepared prepare_scatter_nd(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &indices = desc.inputs[1].shape;
  if (indices.rank() == 0 || indices.back() > static_cast<int64_t>(x.rank()))
    return refuse(why, "the tuples of indices do not fit the data");
  const auto axes = static_cast<size_t>(indices.back());
  const int64_t slice = product(x, axes, x.rank()), count = product(indices, 0, indices.rank() - 1);
  const int64_t elements = count * slice;
  if (desc.inputs[2].shape.elements() != elements) return refuse(why, "the updates do not fit the indices");
  const IndexTuples tuples(x, 0, axes);
  return for_updates(desc, why, [&]<class T, class Put>(Element<T>, Put put) -> Prepared {
    return for_indices(desc.inputs[1].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(x, make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
                            if (Fault fault = copy_data(stream, in, out)) return fault;
                            return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, scatter_slices<T, I, Put>, put,
                                          tuples, Division(slice, elements), elements, in[1].as<const I>(), in[2].as<const T>(),
                                          out[0].as<T>(), IndexFaults(stream));
                          }));
    });
  });
}

Prepared prepare_tensor_scatter(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &update = desc.inputs[1].shape;
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const int64_t axis = ref::resolve_axis(attributes.integer("axis", -2), x.rank());
  if (axis < 1 || update.rank() != x.rank()) return refuse(why, "axis or rank of the update does not fit");
  const auto at = static_cast<size_t>(axis);
  const AxisView cache(x, at), rows(update, at);
  if (cache.outer != rows.outer || cache.inner != rows.inner || rows.size > cache.size)
    return refuse(why, "the update does not fit the cache");
  const bool starts = has_operand(desc, 2);
  if (starts && desc.inputs[2].shape.elements() != x[0]) return refuse(why, "there must be one write index for each of the batch");
  const int64_t elements = update.elements();
  const CacheRows call{cache,
                       rows,
                       Division(rows.inner, elements),
                       Division(rows.size, elements),
                       Division(cache.outer / std::max<int64_t>(x[0], 1), elements),
                       elements,
                       static_cast<int>(axis),
                       attributes.text("mode", "linear") == "circular"};
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return for_indices(starts ? desc.inputs[2].dtype : DType::kInt64, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(x, make_kernel([call, starts](Stream& stream, Inputs in, Outputs out) -> Fault {
                            if (Fault fault = copy_data(stream, in, out)) return fault;
                            return launch(stream, {blocks_for(call.elements, kBlockThreads), kBlockThreads}, scatter_rows<T, I>, call,
                                          starts ? in[2].as<const I>() : nullptr, in[1].as<const T>(), out[0].as<T>(), IndexFaults(stream));
                          }));
    });
  });
}

}  // namespace serin::kernels::cuda
