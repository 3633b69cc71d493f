// Shape rules of ParseExample and SparseCross: features of examples. How many values a listed feature has is in the messages.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

/// For each dense feature [rows, dims...]; for each sparse one indices, values, shape; for each ragged one values, splits.
Status infer_parse_example(Context& c) {
  if (c.dtype(0) != DType::kString && c.dtype(0) != DType::kUndefined)
    return c.fail("messages are {}, they must be strings", dtype_name(c.dtype(0)));
  const Dims* rows = c.dims(0);
  if (rows && rows->size() > 1) return c.fail("messages have shape {}, they must be [n] or []", print(*rows));
  const auto types = c.node().texts("types");
  const auto ranks = c.node().integers("ranks"), dims = c.node().integers("dims");
  const auto sparse = c.node().integer("sparse", 0), ragged = c.node().integer("ragged", 0);
  const auto keys = static_cast<int64_t>(c.node().texts("keys").size()), dense = static_cast<int64_t>(ranks.size());
  if (sparse < 0 || ragged < 0 || sparse > keys || ragged > keys || dense + sparse + ragged != keys ||
      types.size() != static_cast<size_t>(keys))
    return c.fail("{} keys, {} types, {} dense, {} sparse and {} ragged features", keys, types.size(), dense, sparse, ragged);
  if (static_cast<int64_t>(c.results()) != dense + 3 * sparse + 2 * ragged) return c.fail("it has {} results", c.results());
  std::vector<DType> dtypes;
  for (const std::string& type : types) {
    const auto dtype = find_dtype(type);
    if (dtype != DType::kFloat32 && dtype != DType::kInt64 && dtype != DType::kString)
      return c.fail("a feature is '{}', it must be f32, i64 or str", type);
    dtypes.push_back(*dtype);
  }
  size_t result = 0, feature = 0, next = 0;
  for (const int64_t rank : ranks) {
    if (rank < 0 || static_cast<uint64_t>(rank) > dims.size() - next) return c.fail("ranks and dims do not fit each other");
    Dims one(dims.begin() + static_cast<int64_t>(next), dims.begin() + static_cast<int64_t>(next) + rank);
    next += static_cast<size_t>(rank);
    if (c.has(feature + 1) && c.dtype(feature + 1) != dtypes[feature])
      return c.fail("operand {} is {}", feature + 1, dtype_name(c.dtype(feature + 1)));
    if (const Dims* given = c.dims(feature + 1)) {
      const Dim size = product(*given);
      if (size.known() && *size.value() > 1 && !unify(size, product(one)))
        return c.fail("operand {} has shape {}", feature + 1, print(*given));
    }
    if (rows) one.insert(one.begin(), rows->begin(), rows->end());
    SERIN_CHECK(c.set(result++, dtypes[feature++], rows ? std::optional(std::move(one)) : std::nullopt));
  }
  const auto rank = rows ? static_cast<int64_t>(rows->size()) + 1 : 2;
  for (int64_t i = 0; i < sparse + ragged; ++i) {
    const Dim values = c.unknown_dim();
    if (i < sparse) SERIN_CHECK(c.set(result++, DType::kInt64, Dims{values, rank}));
    SERIN_CHECK(c.set(result++, dtypes[feature++], Dims{values}));
    const Dim row_count = rows && !rows->empty() ? rows->front() : Dim(1);
    SERIN_CHECK(c.set(result++, DType::kInt64, Dims{i < sparse ? Dim(rank) : row_count + Dim(1)}));
  }
  return {};
}

Status infer_sparse_cross(Context& c) {
  const Dim combinations = c.unknown_dim();
  SERIN_CHECK(c.set(0, DType::kInt64, Dims{combinations, 2}));
  SERIN_CHECK(c.set(1, DType::kInt64, Dims{combinations}));
  return c.set(2, DType::kInt64, Dims{2});
}

}  // namespace serin::graph
