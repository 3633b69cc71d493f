// lower_generic.cc: passes an operator that has no kind of its own in kernels/op.h to the backend by name, with all of its attributes. An
// absent operand keeps its place (kNoTensor).

#include <type_traits>

#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

bool add(kernels::Attributes& attributes, const std::string& key, const graph::Attribute& value) {
  return std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, graph::ConstantPtr>) {
          return false;
        } else {
          attributes.set(key, held);
          return true;
        }
      },
      value);
}

}  // namespace

Status lower_generic(Lowering& at) {
  kernels::Generic generic{.name = std::string(graph::op_name(at.op())), .attributes = {}};
  for (const auto& [key, value] : at.node().attributes) {
    if (!add(generic.attributes, key, value)) return Lowering::refuse("attribute '" + key + "' is a tensor, which kernels do not take");
  }
  std::vector<TensorId> inputs, outputs;
  for (size_t i = 0; i < at.node().inputs.size(); ++i) inputs.push_back(at.has(i) ? at.input(i) : kNoTensor);
  for (size_t i = 0; i < at.node().outputs.size(); ++i) outputs.push_back(at.output(i));
  return at.emit(std::move(generic), std::move(inputs), std::move(outputs));
}

}  // namespace serin::engine
