// selection_sort.cc: TopK. Among equals the one with the lower index comes first; NaN counts as larger than everything, as in NumPy's sort.

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

/// Whether a comes before b: it is better, or as good with a lower index.
template <bool kLargest, class C>
bool better(C a, C b) {
  return kLargest ? greater(a, b) : greater(b, a);
}
template <bool kLargest, class C>
bool before(const Entry<C>& a, const Entry<C>& b) {
  if (better<kLargest>(a.value, b.value)) return true;
  return !better<kLargest>(b.value, a.value) && a.index < b.index;
}

/// The best k of `size` elements `step` apart, in order, in `best`. While k is small they are a heap with the worst on top, which most elements do not
/// beat; where k is not, all are partitioned.
template <bool kLargest, class T, class C>
void best_first(const T* x, int64_t size, int64_t step, int64_t k, std::vector<Entry<C>>& best) {
  const auto order = before<kLargest, C>;
  const bool few = k < size / 8;
  best.clear();
  for (int64_t i = 0; i < (few ? k : size); ++i) best.push_back({load(x[i * step]), i});
  if (!few) {
    if (k < size) std::nth_element(best.begin(), best.begin() + k, best.end(), order);
    std::sort(best.begin(), best.begin() + k, order);
    return;
  }
  if (k == 0) return;
  std::make_heap(best.begin(), best.end(), order);
  for (int64_t i = k; i < size; ++i) {
    const C value = load(x[i * step]);
    const C worst = best.front().value;
    if (kLargest ? value <= worst : value >= worst) continue;  // most of them; a later one must be better, not as good
    if (!better<kLargest>(value, worst)) continue;             // NaN
    std::pop_heap(best.begin(), best.end(), order);
    best.back() = {value, i};
    std::push_heap(best.begin(), best.end(), order);
  }
  std::sort_heap(best.begin(), best.end(), order);
}

template <class T>
Fault run(size_t axis, bool largest, Inputs in, Outputs out) {
  const AxisView x(in[0].shape, axis);
  if (in[1].elements() != 1) return "k has " + std::to_string(in[1].elements()) + " elements, it must be one number";
  const int64_t k = index_at(in[1], 0);
  if (k < 0 || k > x.size) return "k is " + std::to_string(k) + ", axis " + std::to_string(axis) + " has " + std::to_string(x.size);
  for (TensorView& y : out) y.shape[axis] = k;

  std::vector<Entry<compute_t<T>>> best;
  for (int64_t o = 0; o < x.outer; ++o) {
    for (int64_t j = 0; j < x.inner; ++j) {
      const T* row = in[0].as<const T>() + x.at(o, 0, j);
      largest ? best_first<true>(row, x.size, x.inner, k, best) : best_first<false>(row, x.size, x.inner, k, best);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = (o * k + i) * x.inner + j, index = best[static_cast<size_t>(i)].index;
        out[0].as<T>()[at] = row[index * x.inner];
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
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [axis, largest](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(static_cast<size_t>(axis), largest, in, out); });
  });
}

}  // namespace serin::kernels::ref
