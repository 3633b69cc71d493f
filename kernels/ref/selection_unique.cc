// selection_unique.cc: Unique, of single elements (the tensor flattened) or of the slices along an axis.
//
// The slices' numbers are sorted, equal ones side by side with the first occurrence in front: each run is one unique slice. Unsorted output puts
// the runs in the order of their first occurrences. NaN equals NaN here and sorts last.

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

template <class T>
int compare(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, std::string>) {
    return x.compare(y);
  } else {
    const auto a = load(x), b = load(y);
    if (a != a || b != b) return (a != a) - (b != b);
    return a < b ? -1 : b < a;
  }
}

/// Which slices are alike: `first` has the number of each unique one's first occurrence, `group` the unique one of each slice.
struct Groups {
  std::vector<int64_t> first, group, counts;
};

template <class T>
Groups group_slices(const T* x, const AxisView& view, bool sorted) {
  const auto order = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t j = 0; j < view.inner; ++j) {
        if (const int sign = compare(x[view.at(o, a, j)], x[view.at(o, b, j)])) return sign;
      }
    }
    return 0;
  };
  std::vector<int64_t> slices(static_cast<size_t>(view.size));
  std::iota(slices.begin(), slices.end(), int64_t{0});
  std::stable_sort(slices.begin(), slices.end(), [&](int64_t a, int64_t b) { return order(a, b) < 0; });

  Groups groups;
  groups.group.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    if (i == 0 || order(slices[i - 1], slices[i]) != 0) {
      groups.first.push_back(slices[i]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.group[static_cast<size_t>(slices[i])] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;

  std::vector<size_t> by_occurrence(groups.first.size());
  std::iota(by_occurrence.begin(), by_occurrence.end(), size_t{0});
  std::sort(by_occurrence.begin(), by_occurrence.end(), [&](size_t a, size_t b) { return groups.first[a] < groups.first[b]; });
  Groups result{{}, groups.group, {}};
  std::vector<int64_t> place(by_occurrence.size());
  for (size_t i = 0; i < by_occurrence.size(); ++i) {
    place[by_occurrence[i]] = static_cast<int64_t>(i);
    result.first.push_back(groups.first[by_occurrence[i]]);
    result.counts.push_back(groups.counts[by_occurrence[i]]);
  }
  for (int64_t& group : result.group) group = place[static_cast<size_t>(group)];
  return result;
}

template <class T>
Fault run(const std::optional<size_t>& axis, bool sorted, Inputs in, Outputs out) {
  const Shape flat{in[0].elements()};
  const AxisView view(axis ? in[0].shape : flat, axis.value_or(0));
  const T* x = in[0].as<const T>();
  const Groups groups = group_slices(x, view, sorted);
  const auto count = static_cast<int64_t>(groups.first.size());

  out[0].shape = axis ? in[0].shape : flat;
  out[0].shape[axis.value_or(0)] = count;
  T* y = out[0].as<T>();
  for (int64_t o = 0; o < view.outer; ++o) {
    for (const int64_t slice : groups.first) y = std::copy_n(x + view.at(o, slice, 0), view.inner, y);
  }
  const std::vector<int64_t>* const lists[] = {&groups.first, &groups.group, &groups.counts};
  for (size_t i = 1; i < out.size(); ++i) {
    out[i].shape = Shape{static_cast<int64_t>(lists[i - 1]->size())};
    if (out[i].data) std::copy(lists[i - 1]->begin(), lists[i - 1]->end(), out[i].as<int64_t>());
  }
  return kOk;
}

}  // namespace

Prepared unique(const GenericDesc& desc, std::string& why) {
  std::optional<size_t> axis;
  if (desc.attributes.has("axis")) {
    const int64_t resolved = resolve_axis(desc.attributes.integer("axis", 0), desc.inputs[0].shape.rank());
    if (resolved < 0) return refuse(why, "axis out of range");
    axis = static_cast<size_t>(resolved);
  }
  const bool sorted = desc.attributes.integer("sorted", 1) != 0;
  const auto make = [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([axis, sorted](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(axis, sorted, in, out); });
  };
  if (desc.inputs[0].dtype == DType::kString) return make(Element<std::string>{});
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T> element) -> Prepared {
    if constexpr (std::is_void_v<T>)
      return refuse_dtype(why, desc.inputs[0].dtype);
    else
      return make(element);
  });
}

}  // namespace serin::kernels::ref
