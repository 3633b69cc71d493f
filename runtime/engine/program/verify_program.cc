// verify_program.cc: checks a Program in one walk in the order of execution. It guards against Serin's own bugs: lower() never returns such
// a program.

#include "runtime/engine/program/verify_program.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace serin::engine {

namespace {

bool is_bounded(const Tensor& tensor, size_t axis) {
  return std::ranges::any_of(tensor.bounded, [axis](const BoundedDim& dim) { return dim.axis == axis; });
}

/// A size that the data decides has a bound here; whether it is what it meets, the run sees (Runner::Call::meets_sizes).
bool broadcasts(const Tensor& from, const Tensor& to) {
  const Shape &x = from.shape, &y = to.shape;
  if (x.rank() > y.rank()) return false;
  for (size_t i = 1; i <= x.rank(); ++i) {
    const size_t own = x.rank() - i, other = y.rank() - i;
    if (x[own] != 1 && x[own] != y[other] && !is_bounded(from, own) && !is_bounded(to, other)) return false;
  }
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), known_(program.tensors.size(), false) {}

  Status run() {
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      known_[i] = program_.tensors[i].constant != nullptr || program_.tensors[i].bytes() == 0;  // nothing writes what is empty
      SERIN_CHECK(check_view(static_cast<TensorId>(i)));
    }
    for (const TensorId id : program_.inputs) known_[root(id)] = true;
    for (const Step& step : program_.steps) SERIN_CHECK(check_step(step));
    for (const TensorId id : program_.outputs) {
      if (!known_[root(id)]) return wrong("output '" + program_.tensor(id).name + "' is computed by no step");
    }
    return {};
  }

 private:
  static Error wrong(std::string what) { return Error{Code::kInternal, std::move(what)}; }
  size_t root(TensorId id) const { return static_cast<size_t>(program_.root(id).first); }

  Status check_view(TensorId id) const {
    const Tensor& view = program_.tensor(id);
    if (view.base == kNoTensor || view.storage != Storage::kFixed) return {};
    if (view.offset + view.bytes() <= program_.tensor(view.base).bytes()) return {};
    return wrong("'" + view.name + "' shows more than '" + program_.tensor(view.base).name + "' has");
  }

  Status check_step(const Step& step) {
    for (const TensorId id : step.inputs) {
      if (id != kNoTensor && !known_[root(id)])
        return wrong(step.label() + " reads '" + program_.tensor(id).name + "' before it is computed");
    }
    const bool element_wise = std::holds_alternative<kernels::Unary>(step.kernel) || std::holds_alternative<kernels::Binary>(step.kernel) ||
                              std::holds_alternative<kernels::Pointwise>(step.kernel);
    if (element_wise && step.bodies.empty()) {
      const Tensor& y = program_.tensor(step.outputs[0]);
      for (const TensorId id : step.inputs) {
        if (!broadcasts(program_.tensor(id), y))
          return wrong(step.label() + ": " + program_.tensor(id).shape.str() + " does not broadcast to " + y.shape.str());
      }
    }
    for (const TensorId id : step.outputs) {
      if (id != kNoTensor) known_[root(id)] = true;
    }
    return {};
  }

  const Program& program_;
  std::vector<bool> known_;  // by root
};

}  // namespace

Status verify(const Program& program) { return Verifier(program).run(); }

}  // namespace serin::engine
