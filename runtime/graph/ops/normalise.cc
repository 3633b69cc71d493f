// Shape rules of normalisations: the result has the input's shape, parameters must fit it.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

Status infer_softmax(Context& c) {
  if (const Dims* x = c.dims(0)) SERIN_CHECK(c.axis(c.node().integer("axis", -1), x->size()));
  return infer_unary(c);
}

Status infer_batch_normalization(Context& c) {
  if (c.node().integer("training_mode", 0) != 0) return c.fail("training_mode is set; only inference is supported");
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() < 2) return c.fail("input has shape {}, it needs a batch and channels", print(*x));
  constexpr std::string_view kNames[] = {"", "scale", "bias", "mean", "variance"};
  for (size_t i = 1; i < 5; ++i) {
    const Dims* parameter = c.dims(i);
    if (!parameter || (parameter->size() == 1 && unify((*parameter)[0], (*x)[1]))) continue;
    return c.fail("{} has shape {}, input has {} channels", kNames[i], print(*parameter), (*x)[1].str());
  }
  return c.set(0, c.dtype(0), *x);
}

Status infer_layer_normalization(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", -1), x->size()));
  const Dims normalised(x->begin() + axis, x->end());
  for (size_t i = 1; i < c.operands(); ++i) {
    const Dims* parameter = c.dims(i);
    if (!parameter) continue;
    const auto wide = broadcast(normalised, *parameter);
    if (!wide || wide->size() != normalised.size())
      return c.fail("{} has shape {}, which does not fit the normalised axes {}", i == 1 ? "scale" : "bias", print(*parameter),
                    print(normalised));
  }
  return c.set(0, c.dtype(0), *x);
}

}  // namespace serin::graph
