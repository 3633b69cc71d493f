// gather.cu: Gather, GatherElements, GatherND: a thread for each element that is moved, or for each 16 bytes of a run of them.

#include "kernels/cuda/index.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"

namespace serin::kernels::cuda {

namespace {

using ref::AxisView;
using ref::Element;

/// The runs of `inner` elements along an axis that `indices` name.
struct Runs {
  AxisView axis;
  int64_t elements;
  Division inner, count;  ///< elements of a run; indices
};

template <class T, class I>
__global__ void gather_runs(Runs runs, const T* x, const I* indices, T* y, IndexFaults faults, int axis) {
  for (int64_t i = first_element(); i < runs.elements; i += element_step()) {
    const int64_t row = runs.inner.quotient(i), outer = runs.count.quotient(row);
    const int64_t at = faults.resolve(indices[row - outer * runs.count.d], runs.axis.size, axis);
    y[i] = at < 0 ? T{} : x[runs.axis.at(outer, at, i - row * runs.inner.d)];
  }
}

/// y[i, j, k] = x[i, index[i, j, k], k] for axis 1: `space` is that of the indices, where an index does not move along that axis.
template <class T, class I>
__global__ void gather_elements(Space<1> space, const T* x, const I* indices, T* y, int64_t size, int64_t step, IndexFaults faults,
                                int axis) {
  for (int64_t i = first_element(); i < space.elements; i += element_step()) {
    int64_t start[1];
    space.locate(i, start);
    const int64_t at = faults.resolve(indices[i], size, axis);
    y[i] = at < 0 ? T{} : x[start[0] + at * step];
  }
}

/// Slices of the data [batch..., d0, d1, ..., slice...].
struct Slices {
  int64_t elements = 0, batch = 0;  ///< of y; of one batch of x
  Division slice, per_batch;        ///< elements of a slice; tuples of a batch
  IndexTuples tuples;
};

template <class T, class I>
__global__ void gather_slices(Slices slices, const T* x, const I* indices, T* y, IndexFaults faults) {
  for (int64_t i = first_element(); i < slices.elements; i += element_step()) {
    const int64_t tuple = slices.slice.quotient(i), first = slices.tuples.offset(indices + tuple * slices.tuples.axes, faults);
    y[i] = first < 0 ? T{} : x[slices.per_batch.quotient(tuple) * slices.batch + first + i - tuple * slices.slice.d];
  }
}

}  // namespace

Prepared prepare_gather(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto axis = static_cast<size_t>(std::get<Gather>(desc.op).axis);
  const AxisView view(desc.inputs[0].shape, axis);
  const int64_t count = desc.inputs[1].shape.elements();
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return for_indices(desc.inputs[1].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(desc.inputs[0].shape, make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
                            return in_pieces<T>({view.inner}, {in[0].data, out[0].data}, [&]<class U>(Element<U>, int64_t of_piece) {
                              AxisView pieces = view;
                              pieces.inner /= of_piece;
                              const int64_t elements = view.outer * count * pieces.inner;
                              const Runs runs{pieces, elements, Division(pieces.inner, elements), Division(count, elements)};
                              return launch(stream, {blocks_for(elements, kBlockThreads), kBlockThreads}, gather_runs<U, I>, runs,
                                            in[0].as<const U>(), in[1].as<const I>(), out[0].as<U>(), IndexFaults(stream),
                                            static_cast<int>(axis));
                            });
                          }));
    });
  });
}

Prepared prepare_gather_elements(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &indices = desc.inputs[1].shape;
  const int64_t axis = ref::resolve_axis(std::get<Generic>(desc.op).attributes.integer("axis", 0), x.rank());
  if (axis < 0 || indices.rank() != x.rank()) return refuse(why, "axis or rank of the indices does not fit");
  const auto at = static_cast<size_t>(axis);
  for (size_t other = 0; other < x.rank(); ++other) {
    if (other != at && indices[other] > x[other]) return refuse(why, "the indices reach over the data");
  }
  Strides strides = row_major_strides(x);
  const int64_t step = std::exchange(strides[at], 0);
  const Space<1> space(indices, {strides});
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return for_indices(desc.inputs[1].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(x,
                          make_kernel([space, step, size = x[at], axis = static_cast<int>(axis)](Stream& stream, Inputs in, Outputs out) {
                            return launch(stream, {blocks_for(space.elements, kBlockThreads), kBlockThreads}, gather_elements<T, I>, space,
                                          in[0].as<const T>(), in[1].as<const I>(), out[0].as<T>(), size, step, IndexFaults(stream), axis);
                          }));
    });
  });
}

Prepared prepare_gather_nd(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &indices = desc.inputs[1].shape;
  const int64_t batch_axes = std::get<Generic>(desc.op).attributes.integer("batch_dims", 0);
  if (indices.rank() == 0 || batch_axes < 0 || batch_axes >= static_cast<int64_t>(std::min(x.rank(), indices.rank())))
    return refuse(why, "batch_dims does not fit the ranks");
  const auto first = static_cast<size_t>(batch_axes);
  if (indices.back() > static_cast<int64_t>(x.rank() - first)) return refuse(why, "the tuples of indices are too long for the data");
  const auto axes = static_cast<size_t>(indices.back());
  const int64_t slice = product(x, first + axes, x.rank()), per_batch = product(indices, first, indices.rank() - 1);
  const int64_t batches = product(indices, 0, first);
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return for_indices(desc.inputs[1].dtype, why, [&]<class I>(Element<I>) -> Prepared {
      return make_indexed(x, make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
                            return in_pieces<T>({slice}, {in[0].data, out[0].data}, [&]<class U>(Element<U>, int64_t of_piece) {
                              Slices call;
                              call.elements = batches * per_batch * slice / of_piece;
                              call.batch = product(x, first, x.rank()) / of_piece;
                              call.slice = Division(slice / of_piece, call.elements), call.per_batch = Division(per_batch, call.elements);
                              call.tuples = IndexTuples(x, first, axes);
                              for (int64_t& stride : call.tuples.strides) stride /= of_piece;
                              return launch(stream, {blocks_for(call.elements, kBlockThreads), kBlockThreads}, gather_slices<U, I>, call,
                                            in[0].as<const U>(), in[1].as<const I>(), out[0].as<U>(), IndexFaults(stream));
                            });
                          }));
    });
  });
}

}  // namespace serin::kernels::cuda
