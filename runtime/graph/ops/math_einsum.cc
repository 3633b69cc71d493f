// math_einsum.cc: the shape rule of Einsum: each label of the result has the size that the operands give it.

#include <map>

#include "runtime/graph/ops/einsum.h"
#include "runtime/graph/ops/families.h"

namespace serin::graph {

Status infer_einsum(Context& c) {
  for (size_t i = 1; i < c.operands(); ++i) SERIN_CHECK(c.same_dtype(0, i));
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.operands(); ++i) {
    if (!c.dims(i)) return c.set(0, c.dtype(0), std::nullopt);
    ranks.push_back(c.dims(i)->size());
  }
  const auto einsum = parse_einsum(c.node().text("equation", ""), ranks);
  if (!einsum) return c.fail("{}", einsum.error().message);

  std::map<char, Dim> sizes;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const char label = einsum->operands[i][axis];
      const Dim& size = (*c.dims(i))[axis];
      const auto [known, fresh] = sizes.emplace(label, size);
      if (fresh) continue;
      const auto both = broadcast({known->second}, {size});
      if (!both) return c.fail("label '{}' is {} and {}", label, known->second.str(), size.str());
      known->second = both->front();
    }
  }
  Dims y;
  for (const char label : einsum->result) y.push_back(sizes.at(label));
  return c.set(0, c.dtype(0), std::move(y));
}

}  // namespace serin::graph
