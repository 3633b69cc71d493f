// form_walk.h: the common part of the stages that give tensors another form: channels in blocks, channels last, 16 bits.
//
// It walks once over the steps. A stage takes a step and puts it back with operands and result in the other form, or the step returns
// unchanged, on the plain tensors. A tensor may exist in both forms. Whether its plain form is computed is recorded for its root, whose
// bytes views share.
#pragma once

#include <utility>
#include <vector>

#include "runtime/engine/program/program.h"

namespace serin::engine {

class FormWalk {
 protected:
  explicit FormWalk(Program& program) : program_(program) { grow(); }

  /// `take(step)` returns whether it was put back in the other form. `want_plain(id)` ensures that the plain tensor is computed. Returns
  /// whether anything changed.
  template <class Take, class WantPlain>
  bool walk(Take&& take, WantPlain&& want_plain) {
    for (const TensorId id : program_.outputs) output_[root(id)] = true;
    std::vector<Step> steps = std::exchange(program_.steps, {});
    for (Step& step : steps) {
      if (take(step)) continue;
      for (const TensorId id : step.inputs) want_plain(id);
      program_.steps.push_back(std::move(step));
    }
    for (const TensorId id : program_.outputs) want_plain(id);
    return changed_;
  }

  static size_t at(TensorId id) { return static_cast<size_t>(id); }
  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }
  const Shape& shape(TensorId id) const { return tensor(id).shape; }
  size_t root(TensorId id) const { return at(program_.root(id).first); }

  TensorId add(Tensor tensor) {
    program_.tensors.push_back(std::move(tensor));
    grow();
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }

  Program& program_;
  std::vector<TensorId> form_;   // by tensor: its other form, if it exists
  std::vector<bool> only_form_;  // by root: its plain form is not computed
  std::vector<bool> output_;     // by root: an output of the program, so that its memory is the caller's
  bool changed_ = false;

 private:
  void grow() {
    form_.resize(program_.tensors.size(), kNoTensor);
    only_form_.resize(program_.tensors.size(), false);
    output_.resize(program_.tensors.size(), false);
  }
};

}  // namespace serin::engine
