// reduce.cc: Reduce over any axes, and ReduceLogSumExp over the last ones, in f32.
//
// Axes that lie side by side are one reduction, of rows or of columns. Others are as many reductions one after the other, from the last axes to the first:
// maxima of maxima, means of equally many means, sums of sums; the later ones sum what the first one has made of the elements.

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// Neighbouring axes [begin, end).
struct Group {
  size_t begin, end;
};

/// From the last to the first.
std::vector<Group> groups_of(std::vector<int64_t> axes) {
  std::ranges::sort(axes, std::greater<>());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  std::vector<Group> groups;
  for (const int64_t given : axes) {
    const auto axis = static_cast<size_t>(given);
    if (!groups.empty() && groups.back().begin == axis + 1)
      groups.back().begin = axis;
    else
      groups.push_back({axis, axis + 1});
  }
  return groups;
}

ReduceFn following(ReduceFn fn) { return fn == ReduceFn::kL1 || fn == ReduceFn::kSumSquare ? ReduceFn::kSum : fn; }

struct Loops {
  ReduceRowsLoop rows;
  ReduceColumnsLoop columns;
};

/// y [outer, inner] = x [outer, n, inner] reduced.
void reduce_group(const Stream& stream, const Loops& loops, const float* x, float* y, int64_t outer, int64_t n, int64_t inner) {
  if (inner == 1) {
    parallel_rows(stream, outer, n, [&](int64_t begin, int64_t end) { loops.rows(x + begin * n, y + begin, end - begin, n); });
  } else if (outer == 1) {
    parallel_ranges(stream, inner, std::max<int64_t>(64, kElements / std::max<int64_t>(n, 1)),
                    [&](int64_t begin, int64_t end) { loops.columns(x + begin, inner, y + begin, n, end - begin); });
  } else {
    parallel_rows(stream, outer, n * inner, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) loops.columns(x + o * n * inner, inner, y + o * inner, n, inner);
    });
  }
}

}  // namespace

Prepared reduce(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Reduce& op = std::get<Reduce>(desc.op);
  const Shape& shape = desc.inputs[0].shape;
  const auto outside = [&](int64_t axis) { return axis < 0 || axis >= static_cast<int64_t>(shape.rank()); };
  if (op.axes.empty() || std::ranges::any_of(op.axes, outside)) return refuse(why, "no axes, or one out of range");
  const std::vector<Group> groups = groups_of(op.axes);
  const Loops first{simd.reduce_rows(op.fn), simd.reduce_columns(op.fn)};
  const Loops later{simd.reduce_rows(following(op.fn)), simd.reduce_columns(following(op.fn))};

  // What stands between two reductions, the first being the largest.
  Shape between = shape;
  for (size_t axis = groups[0].begin; axis < groups[0].end; ++axis) between[axis] = 1;
  const size_t largest = groups.size() > 1 ? static_cast<size_t>(between.elements()) : 0;
  const auto run = [=](Stream& stream, Inputs in, Outputs out) -> Fault {
    Shape x = in[0].shape;
    const float* from = in[0].as<const float>();
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto [begin, end] = groups[i];
      float* const to = i + 1 == groups.size() ? out[0].as<float>() : reinterpret_cast<float*>(stream.scratch) + i % 2 * largest;
      reduce_group(stream, i == 0 ? first : later, from, to, product(x, 0, begin), product(x, begin, end), product(x, end, x.rank()));
      for (size_t axis = begin; axis < end; ++axis) x[axis] = 1;
      from = to;
    }
    return kOk;
  };
  return make_kernel(run, {.scratch_bytes = std::min<size_t>(groups.size() - 1, 2) * largest * sizeof(float)});
}

Prepared log_sum_exp(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "ReduceLogSumExp") return refuse(why, "not ReduceLogSumExp");
  if (desc.inputs.size() != 1 || !is_f32(desc, why)) return refuse(why, "f32, and axes that are known");
  const auto rank = static_cast<int64_t>(desc.inputs[0].shape.rank());
  std::vector<int64_t> axes = op.attributes.integers("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::ranges::sort(axes);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[axes.size() - 1 - i] != rank - 1 - static_cast<int64_t>(i)) return refuse(why, "only over the last axes");
  }
  if (axes.empty()) return refuse(why, "only over the last axes");
  return make_kernel([loop = simd.log_sum_exp_rows, first = static_cast<size_t>(axes[0])](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& x = in[0].shape;
    const int64_t rows = product(x, 0, first), n = product(x, first, x.rank());
    parallel_rows(stream, rows, 4 * n, [&](int64_t begin, int64_t end) {
      loop(in[0].as<const float>() + begin * n, out[0].as<float>() + begin, end - begin, n);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
