// Shape rules of Attention and its relatives. What the operands must agree on is checked where they are numbers, by the kernels' description
// (kernels/attention.h); here only what the results are made of.

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// q, k or v as [batch, heads, length, head].
struct Heads {
  Dim batch, heads, length, head;
};

Result<std::optional<Heads>> heads_of(const Context& c, size_t operand, std::string_view count) {
  const Dims* x = c.dims(operand);
  if (!x) return std::optional<Heads>();
  if (x->size() == 4) return std::optional<Heads>({(*x)[0], (*x)[1], (*x)[2], (*x)[3]});
  if (x->size() != 3) return c.fail("operand {} has shape {}, it must have rank 3 or 4", operand, print(*x));
  const int64_t heads = c.node().integer(count, 0);
  if (heads < 1) return c.fail("attribute '{}' is {}, an operand of rank 3 needs the number of heads", count, heads);
  if ((*x)[2].known() && *(*x)[2].value() % heads != 0)
    return c.fail("operand {} has rows of {}, which {} heads do not divide", operand, (*x)[2].str(), heads);
  return std::optional<Heads>({(*x)[0], Dim(heads), (*x)[1], floor_div((*x)[2], Dim(heads))});
}

Status set_unknown(Context& c) {
  for (size_t i = 0; i < c.results(); ++i) SERIN_CHECK(c.set(i, c.dtype(0), std::nullopt));
  return {};
}

}  // namespace

Status infer_attention(Context& c) {
  for (const size_t i : {1, 2}) SERIN_CHECK(c.same_dtype(0, i));
  SERIN_TRY(const auto q, heads_of(c, 0, "q_num_heads"));
  SERIN_TRY(const auto k, heads_of(c, 1, "kv_num_heads"));
  SERIN_TRY(const auto v, heads_of(c, 2, "kv_num_heads"));
  if (!q || !k || !v) return set_unknown(c);
  if (!unify(k->length, v->length)) return c.fail("k and v have {} and {} rows", k->length.str(), v->length.str());
  const Dims* const past = c.dims(4);
  if (past && past->size() != 4) return c.fail("past_key has shape {}, it must have rank 4", print(*past));
  if (c.has(4) && !past) return set_unknown(c);
  const Dim total = past ? (*past)[2] + k->length : k->length;
  const bool flat = c.dims(0)->size() == 3;
  Dims y{q->batch, q->heads, q->length, v->head};
  if (flat) y = {q->batch, q->length, q->heads * v->head};
  if (!flat && c.node().integer("heads_inside", 0) != 0) y = {q->batch, q->length, q->heads, v->head};
  SERIN_CHECK(c.set(0, c.dtype(0), std::move(y)));
  if (c.results() > 1) SERIN_CHECK(c.set(1, c.dtype(0), Dims{k->batch, k->heads, total, k->head}));
  if (c.results() > 2) SERIN_CHECK(c.set(2, c.dtype(0), Dims{v->batch, v->heads, total, v->head}));
  if (c.results() > 3) SERIN_CHECK(c.set(3, c.dtype(0), Dims{q->batch, q->heads, q->length, total}));
  return {};
}

Status infer_rotary_embedding(Context& c) {
  for (const size_t i : {1, 2}) SERIN_CHECK(c.same_dtype(0, i));
  return c.set(0, c.dtype(0), c.type(0).shape);
}

Status infer_linear_attention(Context& c) {
  SERIN_TRY(const auto q, heads_of(c, 0, "q_num_heads"));
  SERIN_TRY(const auto v, heads_of(c, 2, "kv_num_heads"));
  if (!q || !v) return set_unknown(c);
  SERIN_CHECK(c.set(0, c.dtype(0), Dims{q->batch, q->length, q->heads * v->head}));
  return c.set(1, c.has(3) ? c.dtype(3) : c.dtype(0), Dims{v->batch, v->heads, q->head, v->head});
}

Status infer_causal_conv(Context& c) {
  const Dims *x = c.dims(0), *weight = c.dims(1);
  if (!x || !weight) return set_unknown(c);
  if (x->size() != 3 || weight->size() != 3)
    return c.fail("x has shape {}, the weight {}: both must have rank 3", print(*x), print(*weight));
  SERIN_CHECK(c.set(0, c.dtype(0), *x));
  return c.set(1, c.dtype(0), Dims{(*x)[0], (*x)[1], (*weight)[2] - Dim(1)});
}

}  // namespace serin::graph
