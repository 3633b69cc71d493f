// norm_rules.cc: shape rules of one family: normalisations, losses, training steps. Most results have the input's shape; what the rules are
// for is to refuse parameters that do not fit it.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

namespace {

/// LRN looks at `size` channels for each one.
constexpr int64_t kMaxNeighbours = 4096;

Status require_channels(const Context& c, size_t first, size_t last, const Dim& channels) {
  for (size_t i = first; i < last; ++i) {
    const Dims* parameter = c.dims(i);
    if (parameter && (parameter->size() != 1 || !unify(parameter->front(), channels)))
      return c.fail("operand {} has shape {}, the input has {} channels", i, print(*parameter), channels.str());
  }
  return {};
}

Status require_images(const Context& c) {
  const Dims* x = c.dims(0);
  if (x && x->size() < 2) return c.fail("input has shape {}, it needs a batch and channels", print(*x));
  return {};
}

}  // namespace

Status infer_batch_normalization_training(Context& c) {
  SERIN_CHECK(require_images(c));
  const Dims* x = c.dims(0);
  if (x) SERIN_CHECK(require_channels(c, 1, 5, (*x)[1]));
  SERIN_CHECK(c.set(0, c.dtype(0), c.type(0).shape));
  for (size_t i = 1; i < c.results(); ++i) SERIN_CHECK(c.set(i, c.dtype(i + 2), c.type(i + 2).shape));
  return {};
}

/// The mask is bool and shaped like the input.
Status infer_dropout(Context& c) {
  SERIN_CHECK(infer_unary(c));
  return c.results() > 1 ? c.set(1, DType::kBool, c.type(0).shape) : Status{};
}

Status infer_instance_normalization(Context& c) {
  SERIN_CHECK(require_images(c));
  SERIN_CHECK(c.same_dtype(0, 1));
  SERIN_CHECK(c.same_dtype(0, 2));
  if (const Dims* x = c.dims(0)) SERIN_CHECK(require_channels(c, 1, 3, (*x)[1]));
  return infer_unary(c);
}

/// Scale and bias have one value for each channel, or (opset 18) for each group.
Status infer_group_normalization(Context& c) {
  SERIN_CHECK(require_images(c));
  SERIN_CHECK(c.same_dtype(0, 1));
  SERIN_CHECK(c.same_dtype(0, 2));
  const int64_t groups = c.node().integer("num_groups", 0);
  if (groups < 1) return c.fail("num_groups is {}, it must be at least 1", groups);
  const Dims* x = c.dims(0);
  if (!x) return infer_unary(c);
  const auto channels = (*x)[1].value();
  if (channels && *channels % groups != 0) return c.fail("{} channels do not make {} groups", *channels, groups);
  const Dims* scale = c.dims(1);
  const bool for_groups = scale && scale->size() == 1 && scale->front() == Dim(groups);
  SERIN_CHECK(require_channels(c, 1, 3, for_groups ? Dim(groups) : (*x)[1]));
  return infer_unary(c);
}

Status infer_layer_normalization_training(Context& c) {
  SERIN_CHECK(infer_layer_normalization(c));
  SERIN_TRY(const DType dtype, c.dtype_attribute("stash", DType::kFloat32));
  const Dims* x = c.dims(0);
  std::optional<Dims> statistics;
  if (x) {
    SERIN_TRY(const int64_t axis, c.axis(c.node().integer("axis", -1), x->size()));
    statistics = *x;
    for (auto i = static_cast<size_t>(axis); i < x->size(); ++i) (*statistics)[i] = 1;
  }
  for (size_t i = 1; i < c.results(); ++i) SERIN_CHECK(c.set(i, dtype, statistics));
  return {};
}

Status infer_lp_normalization(Context& c) {
  const int64_t p = c.node().integer("p", 2);
  if (p != 1 && p != 2) return c.fail("p is {}, it must be 1 or 2", p);
  return infer_softmax(c);
}

Status infer_lrn(Context& c) {
  SERIN_CHECK(require_images(c));
  const int64_t size = c.node().integer("size", 0);
  if (size < 1 || size > kMaxNeighbours) return c.fail("size is {}, it must be between 1 and {}", size, kMaxNeighbours);
  return infer_unary(c);
}

Status infer_mean_variance_normalization(Context& c) {
  if (const Dims* x = c.dims(0)) {
    const auto axes = c.node().attributes.contains("axes") ? c.node().integers("axes") : std::vector<int64_t>{0, 2, 3};
    SERIN_CHECK(c.axes(axes, x->size()));
  }
  return infer_unary(c);
}

/// scores [n, c, d...], target [n, d...], weight [c]? -> loss [] or [n, d...], log probabilities [n, c, d...]?
Status infer_loss(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  if (c.has(2)) SERIN_CHECK(c.same_dtype(0, 2));
  const Dims *x = c.dims(0), *target = c.dims(1);
  if (x && x->size() < 2) return c.fail("scores have shape {}, they need a batch and classes", print(*x));
  if (x) SERIN_CHECK(require_channels(c, 2, 3, (*x)[1]));
  if (x && target) {
    Dims expected = *x;
    expected.erase(expected.begin() + 1);
    if (!agree(expected, *target)) return c.fail("target has shape {}, the scores {} need {}", print(*target), print(*x), print(expected));
  }
  if (c.results() > 1) SERIN_CHECK(c.set(1, c.dtype(0), c.type(0).shape));
  const std::string reduction = c.node().text("reduction", "mean");
  if (reduction != "none" && reduction != "mean" && reduction != "sum")
    return c.fail("reduction is '{}', it must be none, mean or sum", reduction);
  return c.set(0, c.dtype(0), reduction == "none" ? c.type(1).shape : Dims{});
}

namespace {

/// Rate, count, then n tensors X, n gradients and `states` lists of n states -> new X, new states.
Status infer_optimizer(Context& c, size_t states) {
  const size_t given = c.operands() - 2, n = given / (2 + states);
  if (given % (2 + states) != 0 || c.results() != n * (1 + states))
    return c.fail("{} operands and {} results do not make lists of one length", c.operands(), c.results());
  for (size_t i = 0; i < c.results(); ++i) {
    const size_t source = 2 + (i < n ? i : i + n);  // the gradients have no results
    SERIN_CHECK(c.set(i, c.dtype(source), c.type(source).shape));
  }
  return {};
}

}  // namespace

Status infer_one_state(Context& c) { return infer_optimizer(c, 1); }
Status infer_two_states(Context& c) { return infer_optimizer(c, 2); }

}  // namespace serin::graph
