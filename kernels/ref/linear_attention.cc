// linear_attention.cc: LinearAttention: a state [head, v_head] for each kv head that is read by the queries as it grows, step by step:
//
//   state *= exp(decay)               gated, gated_delta: one factor for a head or for each row
//   v      = beta (v - state' k)      delta, gated_delta: what the state does not yet answer for k
//   state += k v'
//   y      = scale state' q

#include <cmath>
#include <vector>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

namespace {

enum : size_t { kQ, kK, kV, kPast, kDecay, kBeta };

struct Linear {
  int64_t q_heads, kv_heads, head, v_head;
  bool gated, delta;
  double scale;
};

template <class T>
class Recurrence {
 public:
  Recurrence(const Linear& op, Inputs in, Outputs out)
      : op_(op), in_(in), out_(out), batch_(in[kQ].shape[0]), steps_(in[kQ].shape[1]), state_(static_cast<size_t>(op.head * op.v_head)) {}

  void run() {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t h = 0; h < op_.kv_heads; ++h) {
        const int64_t size = op_.head * op_.v_head, at = (b * op_.kv_heads + h) * size;
        const TensorView* const past = operand(in_, kPast);
        for (int64_t i = 0; i < size; ++i) state_[static_cast<size_t>(i)] = past ? widen(past->as<const T>()[at + i]) : 0;
        for (int64_t t = 0; t < steps_; ++t) step(b, h, t);
        for (int64_t i = 0; i < size; ++i) out_[1].as<T>()[at + i] = narrow<T>(state_[static_cast<size_t>(i)]);
      }
    }
  }

 private:
  double& state(int64_t d, int64_t m) { return state_[static_cast<size_t>(d * op_.v_head + m)]; }
  double value(size_t input, int64_t b, int64_t t, int64_t column) const {
    const TensorView& view = in_[input];
    return widen(view.as<const T>()[(b * steps_ + t) * view.shape[2] + column]);
  }
  double decay(int64_t b, int64_t t, int64_t h, int64_t d) const {
    return value(kDecay, b, t, in_[kDecay].shape[2] == op_.kv_heads ? h : h * op_.head + d);
  }
  double beta(int64_t b, int64_t t, int64_t h) const { return value(kBeta, b, t, in_[kBeta].shape[2] == 1 ? 0 : h); }

  void step(int64_t b, int64_t h, int64_t t) {
    const auto key = [&](int64_t d) { return value(kK, b, t, h * op_.head + d); };
    for (int64_t d = 0; op_.gated && d < op_.head; ++d) {
      const double factor = std::exp(decay(b, t, h, d));
      for (int64_t m = 0; m < op_.v_head; ++m) state(d, m) *= factor;
    }
    for (int64_t m = 0; m < op_.v_head; ++m) {
      double v = value(kV, b, t, h * op_.v_head + m);
      if (op_.delta) {
        double answer = 0;
        for (int64_t d = 0; d < op_.head; ++d) answer += state(d, m) * key(d);
        v = beta(b, t, h) * (v - answer);
      }
      for (int64_t d = 0; d < op_.head; ++d) state(d, m) += key(d) * v;
    }
    const int64_t group = op_.q_heads / op_.kv_heads;
    for (int64_t q = h * group; q < (h + 1) * group; ++q) {
      T* const y = out_[0].as<T>() + (b * steps_ + t) * op_.q_heads * op_.v_head + q * op_.v_head;
      for (int64_t m = 0; m < op_.v_head; ++m) {
        double sum = 0;
        for (int64_t d = 0; d < op_.head; ++d) sum += value(kQ, b, t, q * op_.head + d) * state(d, m);
        y[m] = narrow<T>(op_.scale * sum);
      }
    }
  }

  const Linear& op_;
  Inputs in_;
  Outputs out_;
  const int64_t batch_, steps_;
  std::vector<double> state_;  // [head, v_head]
};

bool check(const GenericDesc& desc, const Linear& op, std::string& why) {
  const Shape& q = desc.inputs[kQ].shape;
  const auto is = [&](size_t i, std::initializer_list<int64_t> widths) {
    if (!desc.has(i)) return true;
    const Shape& shape = desc.inputs[i].shape;
    for (const int64_t width : widths) {
      if (shape == Shape{q[0], q[1], width}) return true;
    }
    why = "input " + std::to_string(i) + " has shape " + shape.str();
    return false;
  };
  if (op.gated != desc.has(kDecay) || op.delta != desc.has(kBeta))
    why = "the update rule does not go with the operands";
  else if (desc.has(kPast) && desc.inputs[kPast].shape != Shape{q[0], op.kv_heads, op.head, op.v_head})
    why = "past_state has shape " + desc.inputs[kPast].shape.str();
  else if (is(kK, {op.kv_heads * op.head}) && is(kV, {op.kv_heads * op.v_head}) && is(kDecay, {op.kv_heads, op.kv_heads * op.head}))
    is(kBeta, {op.kv_heads, 1});
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != DType::kUndefined && input.dtype != desc.inputs[kQ].dtype) why = "inputs differ in dtype";
  }
  return why.empty();
}

}  // namespace

Prepared linear_attention(const GenericDesc& desc, std::string& why) {
  const std::string rule = desc.attributes.text("update_rule", "gated_delta");
  Linear op{};
  op.q_heads = desc.attributes.integer("q_num_heads", 0);
  op.kv_heads = desc.attributes.integer("kv_num_heads", 0);
  op.gated = rule == "gated" || rule == "gated_delta";
  op.delta = rule == "delta" || rule == "gated_delta";
  if (!op.gated && !op.delta && rule != "linear") return refuse(why, "unknown update_rule '" + rule + "'");
  if (desc.inputs.size() < 3 || desc.outputs.size() != 2) return refuse(why, "needs q, k, v and two results");
  const Shape &q = desc.inputs[kQ].shape, &v = desc.inputs[kV].shape;
  if (q.rank() != 3 || v.rank() != 3) return refuse(why, "q, k and v must have rank 3");
  if (op.kv_heads < 1 || op.q_heads < 1 || op.q_heads % op.kv_heads != 0 || q[2] % op.q_heads != 0 || v[2] % op.kv_heads != 0)
    return refuse(why, "heads do not divide the operands");
  op.head = q[2] / op.q_heads, op.v_head = v[2] / op.kv_heads;
  const double scale = desc.attributes.number("scale", 0);
  op.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(op.head));
  if (!check(desc, op, why)) return nullptr;
  return for_floats(desc.inputs[kQ].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault {
      Recurrence<T>(op, in, out).run();
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
