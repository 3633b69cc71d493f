// lower_epilogue.cc: the activation that passes moved into FusedConv and FusedMatMul: attributes "activation", "alpha", "beta".

#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

using kernels::UnaryFn;

struct Named {
  std::string_view name;
  UnaryFn fn;
};
constexpr Named kActivations[] = {
    {"", UnaryFn::kIdentity},
    {"Relu", UnaryFn::kRelu},
    {"LeakyRelu", UnaryFn::kLeakyRelu},
    {"Clip", UnaryFn::kClip},
    {"Sigmoid", UnaryFn::kSigmoid},
    {"Tanh", UnaryFn::kTanh},
    {"HardSigmoid", UnaryFn::kHardSigmoid},
    {"HardSwish", UnaryFn::kHardSwish},
    {"Elu", UnaryFn::kElu},
    {"Swish", UnaryFn::kSilu},
    {"Gelu", UnaryFn::kGelu},
    {"GeluTanh", UnaryFn::kGeluTanh},
};

}  // namespace

Result<kernels::Epilogue> lower_epilogue(const Lowering& at) {
  const std::string wanted = at.node().text("activation", "");
  for (const Named& activation : kActivations) {
    if (activation.name != wanted) continue;
    return kernels::Epilogue{activation.fn, static_cast<float>(at.node().number("alpha", 0)),
                             static_cast<float>(at.node().number("beta", 0)), false};
  }
  return Lowering::refuse("has an unknown activation '" + wanted + "'");
}

}  // namespace serin::engine
