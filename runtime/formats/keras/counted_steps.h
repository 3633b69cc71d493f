// counted_steps.h: sequences of which some steps do not count, for operators that know only a length.
//
//   CountedSteps steps(b, mask);                          // mask [batch, steps], true where a step counts
//   const ValueId x = steps.to_front(inputs);             // [batch, steps, features]: what counts first, in order
//   ... LSTM(x, lengths = steps.lengths()) ...
//   const ValueId y = steps.spread(outputs, false);       // each step has what the last step that counted gave
//
// A recurrent layer of Keras keeps its state over a step that does not count. So its states are those of the sequence without these steps, wherever they are.
#pragma once

#include "runtime/graph/builder.h"

namespace serin::formats::keras {

class CountedSteps {
 public:
  CountedSteps(graph::Builder& b, graph::ValueId mask);

  graph::ValueId lengths() const { return lengths_; }  ///< i32 [batch]
  /// x [batch, steps, ...] with the steps that count first; the others follow.
  graph::ValueId to_front(graph::ValueId x);
  /// `y` [batch, steps, ...] is made from such an x, and zero behind the lengths. Gives each step the result of the last step that counted, in
  /// the direction of the computation, and zero before the first of them.
  graph::ValueId spread(graph::ValueId y, bool backwards);
  /// y [batch, steps, ...], zero at steps that do not count.
  graph::ValueId zeroed(graph::ValueId y);
  /// y [batch, ...], zero for sequences in which nothing counts.
  graph::ValueId zeroed_if_empty(graph::ValueId y);
  /// y [batch, ...], zero for sequences whose last step, in the direction of the computation, does not count.
  graph::ValueId zeroed_by_end(graph::ValueId y, bool backwards);

 private:
  graph::ValueId look_up(graph::ValueId x, graph::ValueId places);
  graph::ValueId where(graph::ValueId condition, graph::ValueId y);

  graph::Builder& b_;
  const graph::ValueId mask_;
  graph::ValueId counts_, steps_, places_, until_, lengths_;
};

}  // namespace serin::formats::keras
