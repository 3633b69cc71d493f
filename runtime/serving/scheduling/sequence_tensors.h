// sequence_tensors.h: what a model of sequences reads and writes beyond what clients see: controls, which tell it where in its sequence a row is, and states,
// which go from one request into the next.
#pragma once

#include <memory>
#include <vector>

#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/settings/settings_parts.h"

namespace serin::serving {

class SequenceTensors {
 public:
  /// The tensors that the model is to be given next, in the order of the settings. What holds them is never written to again.
  struct States {
    std::vector<TensorView> views;
    std::shared_ptr<const void> memory;
  };

  /// Of a model that takes `whole`. The error names the tensor.
  static Result<SequenceTensors> make(const SequenceSettings& settings, const protocol::Signature& whole, bool batchable);

  /// As clients see it.
  const protocol::Signature& signature() const { return visible_; }
  /// Of the first request.
  const States& initial() const { return initial_; }
  /// Whether the model can be told of that sequence.
  Status check(const protocol::SequencePlace& place) const;
  size_t state_bytes() const { return state_bytes_; }
  /// Makes the inputs those of the model.
  void complete(Job& job, const States& states) const;
  /// Makes the outputs those that clients see.
  States take_states(Outputs& outputs) const;

 private:
  struct Control {
    SequenceControl::Kind kind;
    TensorView tensor;  // of one element, without data
    std::array<double, 2> values;
  };
  /// Where an input of the model comes from.
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
  std::vector<size_t> state_outputs_;  // into the model's outputs
  std::vector<size_t> own_outputs_;    // the others
  States initial_;
  size_t state_bytes_ = 0;  // of the first ones
};

}  // namespace serin::serving
