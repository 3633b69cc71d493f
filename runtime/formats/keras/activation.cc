// activation.cc: the functions of keras.activations, by name.

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

struct ActivationRow {
  std::string_view name;
  Op op;
  std::string_view key = {};  ///< of an attribute
  double value = 0;
};

constexpr ActivationRow kFunctions[] = {
    {"relu", Op::kRelu},
    {"elu", Op::kElu, "alpha", 1.0},
    {"celu", Op::kCelu, "alpha", 1.0},
    {"tanh", Op::kTanh},
    {"sigmoid", Op::kSigmoid},
    {"hard_silu", Op::kHardSwish},
    {"hard_swish", Op::kHardSwish},
    {"silu", Op::kSwish},
    {"swish", Op::kSwish},
    {"softplus", Op::kSoftplus},
    {"softsign", Op::kSoftsign},
    {"exponential", Op::kExp},
    {"leaky_relu", Op::kLeakyRelu, "alpha", 0.2},
    {"mish", Op::kMish},
};

}  // namespace

ValuePtr Layer::activate(const ValuePtr& x, Json activation) {
  if (!activation || activation.is_null()) return x;
  std::string name = activation.text_or("");
  if (name.empty() && activation["registered_name"].is_null()) name = activation["config"].text_or("");
  if (name.empty() && activation.is_object()) {
    unsupported(fmt::format("activation '{}' is a function or layer of its own", activation["class_name"].text_or("?")));
    return x;
  }
  if (name == "linear") return x;
  for (const ActivationRow& row : kFunctions) {
    if (row.name != name) continue;
    graph::Attributes attributes;
    if (!row.key.empty()) attributes.emplace(row.key, row.value);
    return map(x, [&](ValueId id) { return b().add(row.op, {id}, graph::Attributes(attributes)); });
  }
  const auto with = [&](Op op, graph::Attributes attributes) {
    return map(x, [&](ValueId id) { return b().add(op, {id}, graph::Attributes(attributes)); });
  };
  if (name == "relu6") return with(Op::kClip, {{"min", 0.0}, {"max", 6.0}});
  if (name == "selu") return with(Op::kSelu, {{"alpha", 1.6732632423543772}, {"gamma", 1.0507009873554805}});
  if (name == "gelu") return with(Op::kGelu, {{"approximate", std::string("none")}});
  if (name == "hard_sigmoid") return with(Op::kHardSigmoid, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  if (name == "hard_tanh") return with(Op::kClip, {{"min", -1.0}, {"max", 1.0}});
  if (name == "log_sigmoid") {
    const auto negative = [&](ValueId id) { return b().add(Op::kNeg, {id}); };
    return map(x, [&](ValueId id) { return negative(b().add(Op::kSoftplus, {negative(id)})); });
  }
  if (name == "softmax" || name == "log_softmax") {
    const ValueId id = scope().plain(*x);
    return tf::plain_value(b().add(name == "softmax" ? Op::kSoftmax : Op::kLogSoftmax, {id}, {{"axis", int64_t{-1}}}));
  }
  unsupported(fmt::format("activation '{}'", name));
  return x;
}

}  // namespace serin::formats::keras
