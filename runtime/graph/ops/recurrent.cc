// Shape rules of RNN, GRU and LSTM: y [steps, directions, batch, hidden], the last states [directions, batch, hidden]; with layout = 1 the batch
// comes first. That the weights fit each other is checked by the kernels' description (kernels/recurrent.h).

#include "runtime/graph/ops/families.h"

namespace serin::graph {

Status infer_recurrent(Context& c) {
  for (const size_t i : {1, 2}) SERIN_CHECK(c.same_dtype(0, i));
  const Dims *x = c.dims(0), *r = c.dims(2);
  if ((x && x->size() != 3) || (r && r->size() != 3)) return c.fail("x and r must have rank 3");
  const std::string direction = c.node().text("direction", "forward");
  const Dim directions = direction == "bidirectional" ? 2 : 1;
  if (r && (*r)[0].known() && !((*r)[0] == directions))
    return c.fail("r has {} directions, '{}' has {}", (*r)[0].str(), direction, directions.str());
  const bool batch_first = c.node().integer("layout", 0) != 0;
  const Dim hidden = r ? (*r)[2] : c.unknown_dim();
  const Dim steps = x ? (*x)[batch_first ? 1 : 0] : c.unknown_dim();
  Dim batch = x ? (*x)[batch_first ? 0 : 1] : c.unknown_dim();
  for (const size_t i : {5, 6}) {  // the first states; a constant one fits one batch only
    const Dims* first = c.has(i) && c.dims(i) && c.dims(i)->size() == 3 ? c.dims(i) : nullptr;
    if (!first) continue;
    const auto both = unify(batch, (*first)[batch_first ? 0 : 1]);
    if (!both) return c.fail("a first state has shape {}, the batch is {}", print(*first), batch.str());
    batch = *both;
  }
  const Dims state = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  SERIN_CHECK(c.set(0, c.dtype(0), batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden}));
  for (size_t i = 1; i < c.results(); ++i) SERIN_CHECK(c.set(i, c.dtype(0), state));
  return {};
}

}  // namespace serin::graph
