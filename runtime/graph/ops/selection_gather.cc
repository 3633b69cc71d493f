// Shape rules of operators that take elements by index, or write them there: the Gather and Scatter kinds beside Gather itself.

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

Status check_reduction(const Context& c) {
  const std::string reduction = c.node().text("reduction", "none");
  for (const std::string_view known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return {};
  }
  return c.fail("reduction '{}' is unknown", reduction);
}

/// Data and indices have one rank, and no axis of the indices but `axis` is longer than the data's.
Status check_reach(const Context& c) {
  const Dims* data = c.dims(0);
  const Dims* indices = c.dims(1);
  if (!data) return {};
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", 0), data->size()));
  if (!indices) return {};
  if (indices->size() != data->size()) return c.fail("indices have shape {}, data {}; ranks must be equal", print(*indices), print(*data));
  for (size_t i = 0; i < data->size(); ++i) {
    const auto have = (*data)[i].value(), want = (*indices)[i].value();
    if (i != static_cast<size_t>(axis) && have && want && *want > *have)
      return c.fail("indices of shape {} reach over the data of shape {} at axis {}", print(*indices), print(*data), i);
  }
  return {};
}

/// The number of indices in each tuple: the last dimension of operand 1. Nothing where it is not known.
Result<std::optional<size_t>> tuple_length(const Context& c, size_t rank) {
  const Dims& indices = *c.dims(1);
  if (indices.empty()) return c.fail("indices are a single number; they must have rank 1 or more");
  const auto length = indices.back().value();
  if (!length) return std::optional<size_t>();
  if (*length > static_cast<int64_t>(rank)) return c.fail("tuples of {} indices are too long for data of rank {}", *length, rank);
  return std::optional(static_cast<size_t>(*length));
}

}  // namespace

Status infer_gather_elements(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  SERIN_CHECK(check_reach(c));
  return c.set(0, c.dtype(0), c.type(1).shape);
}

Status infer_gather_nd(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* data = c.dims(0);
  const Dims* indices = c.dims(1);
  if (!data || !indices) return c.set(0, c.dtype(0), std::nullopt);
  const int64_t given = c.node().integer("batch_dims", 0);
  if (given < 0 || given >= static_cast<int64_t>(std::min(data->size(), indices->size())))
    return c.fail("batch_dims is {}, data has shape {}, indices {}", given, print(*data), print(*indices));
  const auto batch = static_cast<size_t>(given);
  SERIN_TRY(const auto length, tuple_length(c, data->size() - batch));
  if (!length) return c.set(0, c.dtype(0), std::nullopt);
  Dims result(indices->begin(), indices->end() - 1);
  for (size_t i = 0; i < batch; ++i) {
    const auto both = unify((*data)[i], (*indices)[i]);
    if (!both) return c.fail("batch axes differ: data has shape {}, indices {}", print(*data), print(*indices));
    result[i] = *both;
  }
  result.insert(result.end(), data->begin() + static_cast<std::ptrdiff_t>(batch + *length), data->end());
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_scatter_elements(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(check_reduction(c));
  SERIN_CHECK(check_reach(c));
  const Dims* indices = c.dims(1);
  const Dims* updates = c.dims(2);
  if (indices && updates && !agree(*indices, *updates))
    return c.fail("updates have shape {}, indices {}", print(*updates), print(*indices));
  return c.set(0, c.dtype(0), c.type(0).shape);
}

Status infer_scatter_nd(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  SERIN_CHECK(c.same_dtype(0, 2));
  SERIN_CHECK(check_reduction(c));
  const Dims* data = c.dims(0);
  const Dims* indices = c.dims(1);
  const Dims* updates = c.dims(2);
  if (!data || !indices) return c.set(0, c.dtype(0), c.type(0).shape);
  SERIN_TRY(const auto length, tuple_length(c, data->size()));
  if (length && updates) {
    Dims wanted(indices->begin(), indices->end() - 1);
    wanted.insert(wanted.end(), data->begin() + static_cast<std::ptrdiff_t>(*length), data->end());
    if (!agree(wanted, *updates)) return c.fail("updates have shape {}, indices and data need {}", print(*updates), print(wanted));
  }
  return c.set(0, c.dtype(0), c.type(0).shape);
}

Status infer_tensor_scatter(Context& c) {
  SERIN_CHECK(c.same_dtype(0, 1));
  SERIN_CHECK(c.index_dtype(2));
  const std::string mode = c.node().text("mode", "linear");
  if (mode != "linear" && mode != "circular") return c.fail("mode '{}' is unknown", mode);
  const Dims* cache = c.dims(0);
  const Dims* update = c.dims(1);
  if (!cache) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", -2), cache->size()));
  if (axis == 0) return c.fail("axis 0 is the batch: nothing can be written along it");
  if (update && update->size() != cache->size()) return c.fail("the update has shape {}, the cache {}", print(*update), print(*cache));
  for (size_t i = 0; update && i < cache->size(); ++i) {
    const auto have = (*cache)[i].value(), want = (*update)[i].value();
    const bool fits = !have || !want || (i == static_cast<size_t>(axis) ? *want <= *have : *want == *have);
    if (!fits) return c.fail("an update of shape {} does not fit the cache of shape {}", print(*update), print(*cache));
  }
  return c.set(0, c.dtype(0), c.type(0).shape);
}

}  // namespace serin::graph
