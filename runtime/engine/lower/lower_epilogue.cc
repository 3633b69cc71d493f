// lower_epilogue.cc: the activation that passes moved into FusedConv and FusedMatMul: attributes "activation", "alpha", "beta".

#include "kernels/function_names.h"
#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

Result<kernels::Epilogue> lower_epilogue(const Lowering& at) {
  const std::string wanted = at.node().text("activation", "");
  const kernels::NamedUnary* row = kernels::find_unary(wanted);
  if (!row || !row->follows) return Lowering::refuse("has an unknown activation '" + wanted + "'");
  return kernels::Epilogue{row->fn, static_cast<float>(at.node().number("alpha", 0)), static_cast<float>(at.node().number("beta", 0)),
                           false};
}

}  // namespace serin::engine
