// sequence_tensors.h: the tensors of a model of sequences that clients do not see: controls and states.
//
// Controls tell the model where in its sequence a row is. States go from one request into the next.
#pragma once

#include <memory>
#include <vector>

#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

class SequenceTensors {
 public:
  /// The tensors for the model's next request, in the order of the settings. Their memory is never written again.
  struct States {
    std::vector<TensorView> views;
    std::shared_ptr<const void> memory;
  };

  /// For a model with the signature `whole`. The error names the tensor.
  static Result<SequenceTensors> make(const SequenceSettings& settings, const protocol::Signature& whole, bool batchable);

  /// The signature that clients see.
  const protocol::Signature& signature() const { return visible_; }
  /// States for the first request.
  const States& initial() const { return initial_; }
  /// Whether the controls can represent that sequence.
  Status check(const protocol::SequencePlace& place) const;
  size_t state_bytes() const { return state_bytes_; }
  /// Adds the model's further inputs.
  void complete(Job& job, const States& states) const;
  /// Removes the states from the outputs and returns them.
  States take_states(Outputs& outputs) const;

 private:
  struct Control {
    SequenceControl::Kind kind;
    TensorView tensor;  // one element, without data
    std::array<double, 2> values;
  };
  /// Origin of an input of the model.
  struct Source {
    enum class Kind : uint8_t { kClient, kControl, kState } kind;
    size_t index;
  };

  Result<size_t> claim_input(const std::string& name, const protocol::Signature& whole, Source source);
  Status add_control(const SequenceControl& control, const protocol::Signature& whole, bool batchable);
  Status add_state(const SequenceState& state, const protocol::Signature& whole, bool batchable, std::vector<const Filling*>& fillings);
  Status make_initial(const std::vector<SequenceState>& states);

  protocol::Signature visible_;
  std::vector<Source> sources_;  // by input of the model
  std::vector<Control> controls_;
  std::vector<size_t> state_outputs_;  // indices of the model's outputs
  std::vector<size_t> own_outputs_;    // indices of the others
  States initial_;
  size_t state_bytes_ = 0;  // bytes of the initial states
};

}  // namespace serin::serving
