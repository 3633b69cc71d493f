// selection_sparse.cc: sparse tensors: indices [values, rank], values, shape [rank]. SparseReshape, FillEmptyRows, SegmentReduce.
//
// Shapes may come with a request, so rows are counted before memory is taken for them.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/ref/selection.h"

namespace serin::kernels::ref {

namespace {

constexpr int64_t kMostRows = int64_t{1} << 24;

/// The sizes behind each axis, multiplied; nothing where that overflows, or a size is negative.
std::optional<std::vector<int64_t>> strides_of(std::span<const int64_t> sizes, int64_t& elements) {
  std::vector<int64_t> strides(sizes.size());
  elements = 1;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = elements;
    if (sizes[axis] < 0 || __builtin_mul_overflow(elements, sizes[axis], &elements)) return std::nullopt;
  }
  return strides;
}

/// The one size that is -1 becomes what the others leave of the elements.
bool complete(std::vector<int64_t>& sizes, int64_t elements) {
  int64_t known = 1;
  const auto open = std::ranges::find(sizes, -1);
  for (auto size = sizes.begin(); size != sizes.end(); ++size)
    if (size != open && (*size < 0 || __builtin_mul_overflow(known, *size, &known))) return false;
  if (open == sizes.end()) return known == elements;
  if (known == 0 || elements % known != 0) return false;
  *open = elements / known;
  return true;
}

std::string list_of(std::span<const int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "[" : ",") + std::to_string(size);
  return text.empty() ? "[]" : text + "]";
}

bool is_matrix(const TensorDesc& indices) { return indices.dtype == DType::kInt64 && indices.shape.rank() == 2; }
bool is_list(const TensorDesc& desc) { return desc.dtype == DType::kInt64 && desc.shape.rank() == 1; }

}  // namespace

/// Operands: indices [k, r], shape [r], new shape [m]. Outputs: indices [k, m], shape [m].
Prepared sparse_reshape(const GenericDesc& desc, std::string& why) {
  if (!is_matrix(desc.inputs[0]) || !is_list(desc.inputs[1]) || !is_list(desc.inputs[2]))
    return refuse(why, "needs [k,r], [r] and [m] of i64");
  return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
    const auto from = in[1].span<const int64_t>(), wanted = in[2].span<const int64_t>();
    std::vector<int64_t> to(wanted.begin(), wanted.end());
    int64_t elements = 0, unused = 0;
    const auto strides = strides_of(from, elements);
    if (!strides || !complete(to, elements)) return list_of(from) + " cannot become " + list_of(wanted);
    const auto new_strides = *strides_of(to, unused);
    if (in[0].shape[1] != static_cast<int64_t>(from.size())) return Fault("indices of another rank than the shape");
    std::ranges::copy(to, out[1].as<int64_t>());
    const auto* index = in[0].as<const int64_t>();
    auto* y = out[0].as<int64_t>();
    for (int64_t i = 0; i < in[0].shape[0]; ++i) {
      int64_t place = 0;
      for (size_t axis = 0; axis < from.size(); ++axis, ++index) {
        if (*index < 0 || *index >= from[axis]) return "index " + std::to_string(*index) + " is outside of " + list_of(from);
        place += *index * (*strides)[axis];
      }
      for (size_t axis = 0; axis < to.size(); ++axis) *y++ = place / new_strides[axis] % to[axis];
    }
    return kOk;
  });
}

/// A default for each row without values. Operands: indices [k, r], values [k], shape [r], default []. Outputs: indices, values, whether each
/// row was empty, and for each of the k values its new place.
Prepared fill_empty_rows(const GenericDesc& desc, std::string& why) {
  if (!is_matrix(desc.inputs[0]) || !is_list(desc.inputs[2])) return refuse(why, "needs indices [k,r] and a shape [r] of i64");
  if (desc.inputs[3].dtype != desc.inputs[1].dtype) return refuse(why, "the default has another type than the values");
  return visit_size(desc.inputs[1].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse(why, "values of no known type");
    } else {
      return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
        const int64_t values = in[0].shape[0], rank = in[0].shape[1];
        if (rank < 1 || in[2].elements() != rank || in[1].elements() != values || in[3].elements() != 1)
          return Fault("indices, values, shape and default do not fit each other");
        const int64_t rows = in[2].as<const int64_t>()[0];
        if (rows < 0 || rows > kMostRows) return "a sparse tensor has " + std::to_string(rows) + " rows";
        const auto* index = in[0].as<const int64_t>();
        std::vector<int64_t> next(static_cast<size_t>(rows) + 1);
        for (int64_t i = 0; i < values; ++i) {
          const int64_t row = index[i * rank];
          if (row < 0 || row >= rows) return "row " + std::to_string(row) + " of a tensor with " + std::to_string(rows);
          ++next[static_cast<size_t>(row) + 1];
        }
        const bool filled = out[0].data && out[1].data && out[2].data;
        std::vector<bool> empty(static_cast<size_t>(rows));
        for (size_t row = 0; row < empty.size(); ++row) {
          empty[row] = next[row + 1] == 0;
          next[row + 1] += next[row] + (empty[row] ? 1 : 0);
        }
        const int64_t total = next.back();
        out[0].shape = Shape{total, rank};
        out[1].shape = Shape{total};
        out[2].shape = Shape{rows};
        if (!filled) return kOk;
        auto* const to = out[0].as<int64_t>();
        for (size_t row = 0; row < empty.size(); ++row) {
          out[2].as<bool>()[row] = empty[row];
          if (!empty[row]) continue;
          std::fill_n(to + next[row] * rank, rank, 0);
          to[next[row] * rank] = static_cast<int64_t>(row);
          out[1].as<T>()[next[row]] = in[3].as<const T>()[0];
        }
        for (int64_t i = 0; i < values; ++i) {
          const int64_t place = next[static_cast<size_t>(index[i * rank])]++;
          std::copy_n(index + i * rank, rank, to + place * rank);
          out[1].as<T>()[place] = in[1].as<const T>()[i];
          if (out[3].data) out[3].as<int64_t>()[i] = place;
        }
        return kOk;
      });
    }
  });
}

/// Rows that belong together are summed: x [k, ...], the segment of each row [k], and the number of segments; without that it follows from the
/// last one. reduction = "sum" | "mean" | "sqrt_n". A segment without rows is 0.
Prepared segment_reduce(const GenericDesc& desc, std::string& why) {
  const std::string reduction = desc.attributes.text("reduction", "sum");
  if (reduction != "sum" && reduction != "mean" && reduction != "sqrt_n") return refuse(why, "reduction is '" + reduction + "'");
  if (!is_list(desc.inputs[1]) || desc.inputs[0].shape.rank() < 1) return refuse(why, "needs rows [k,...] and segments [k] of i64");
  if (desc.has(2) && desc.inputs[2].dtype != DType::kInt64) return refuse(why, "the number of segments must be i64");
  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (!std::is_floating_point_v<T> && !std::is_same_v<T, int32_t> && !std::is_same_v<T, int64_t>) {
      return refuse(why, "needs f32, f64, i32 or i64");
    } else {
      return make_kernel([reduction](Stream&, Inputs in, Outputs out) -> Fault {
        const int64_t rows = in[0].shape[0], width = Shape(in[0].shape.dims().subspan(1)).elements();
        const auto segments = in[1].span<const int64_t>();
        if (in[1].elements() != rows) return std::to_string(rows) + " rows have " + std::to_string(in[1].elements()) + " segments";
        const auto* given = operand_as<int64_t>(in, 2);
        const int64_t count = given ? *given : rows == 0 ? 0 : std::min(std::ranges::max(segments), kMostRows) + 1;
        if (count < 0 || count > kMostRows) return "there are " + std::to_string(count) + " segments";
        Shape shape = in[0].shape;
        shape[0] = count;
        out[0].shape = shape;
        if (!out[0].data) return kOk;
        std::vector<sum_t<T>> sums(static_cast<size_t>(count * width));
        std::vector<int64_t> counts(static_cast<size_t>(count));
        const T* x = in[0].as<const T>();
        for (const int64_t segment : segments) {
          if (segment < 0 || segment >= count) return "segment " + std::to_string(segment) + " of " + std::to_string(count);
          ++counts[static_cast<size_t>(segment)];
          for (int64_t i = 0; i < width; ++i) sums[static_cast<size_t>(segment * width + i)] += static_cast<sum_t<T>>(*x++);
        }
        T* y = out[0].as<T>();
        for (size_t segment = 0; segment < counts.size(); ++segment) {
          const auto rows_in = static_cast<double>(std::max<int64_t>(1, counts[segment]));
          const double divisor = reduction == "mean" ? rows_in : reduction == "sqrt_n" ? std::sqrt(rows_in) : 1.0;
          for (int64_t i = 0; i < width; ++i) {
            const auto sum = sums[segment * static_cast<size_t>(width) + static_cast<size_t>(i)];
            *y++ = reduction == "sum" ? static_cast<T>(sum) : static_cast<T>(static_cast<double>(sum) / divisor);
          }
        }
        return kOk;
      });
    }
  });
}

}  // namespace serin::kernels::ref
