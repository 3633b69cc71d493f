// selection_sort.cc: TopK. Among equals the one with the lower index comes first; NaN counts as larger than everything, as in NumPy's sort.
// The values of a row are copied beside their indices first, so that the heap of the best k compares what lies side by side.

#include <algorithm>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

template <class C>
struct Entry {
  C value;
  int64_t index;
};

template <class C>
bool greater(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (a != a || b != b) return a != a && b == b;
  }
  return a > b;
}

/// The best k of the entries, in order. A heap of k wins while k is small; a partition first where it is not.
template <class C, class Before>
void best_first(std::vector<Entry<C>>& entries, int64_t k, Before before) {
  const auto end = entries.begin() + k;
  if (k < static_cast<int64_t>(entries.size()) / 8) return std::partial_sort(entries.begin(), end, entries.end(), before);
  if (end != entries.end()) std::nth_element(entries.begin(), end, entries.end(), before);
  std::sort(entries.begin(), end, before);
}

template <class T>
Fault run(size_t axis, bool largest, Inputs in, Outputs out) {
  using C = compute_t<T>;
  const AxisView x(in[0].shape, axis);
  if (in[1].elements() != 1) return "k has " + std::to_string(in[1].elements()) + " elements, it must be one number";
  const int64_t k = index_at(in[1], 0);
  if (k < 0 || k > x.size) return "k is " + std::to_string(k) + ", axis " + std::to_string(axis) + " has " + std::to_string(x.size);
  for (TensorView& y : out) y.shape[axis] = k;

  const auto before = [largest](const Entry<C>& a, const Entry<C>& b) {
    if (largest ? greater(a.value, b.value) : greater(b.value, a.value)) return true;
    if (largest ? greater(b.value, a.value) : greater(a.value, b.value)) return false;
    return a.index < b.index;
  };
  std::vector<Entry<C>> entries(static_cast<size_t>(x.size));
  for (int64_t o = 0; o < x.outer; ++o) {
    for (int64_t j = 0; j < x.inner; ++j) {
      for (int64_t i = 0; i < x.size; ++i) entries[static_cast<size_t>(i)] = {load(in[0].as<const T>()[x.at(o, i, j)]), i};
      best_first(entries, k, before);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = (o * k + i) * x.inner + j, index = entries[static_cast<size_t>(i)].index;
        out[0].as<T>()[at] = in[0].as<const T>()[x.at(o, index, j)];
        if (out.size() > 1) out[1].as<int64_t>()[at] = index;
      }
    }
  }
  return kOk;
}

}  // namespace

Prepared top_k(const GenericDesc& desc, std::string& why) {
  const int64_t axis = resolve_axis(desc.attributes.integer("axis", -1), desc.inputs[0].shape.rank());
  if (axis < 0) return refuse(why, "axis out of range");
  if (!is_index_dtype(desc.inputs[1].dtype)) return refuse(why, "k must be i64");
  const bool largest = desc.attributes.integer("largest", 1) != 0;  // `sorted` 0 allows any order: this one, too
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (!kIsNumber<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      return make_kernel(
          [axis, largest](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(static_cast<size_t>(axis), largest, in, out); });
    }
  });
}

}  // namespace serin::kernels::ref
