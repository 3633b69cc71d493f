// recurrent_cell.h: recognises the cells of LSTM and GRU in the body of a loop.
#pragma once

#include <optional>
#include <vector>

#include "runtime/formats/tensorflow/scope.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

/// One turn of a recurrent layer, as the canonical operator has it.
struct RecurrentCell {
  graph::Op op = graph::Op::kLSTM;
  ValueId step = kNone;                   ///< the input of this turn, [batch, features], in the body
  graph::ConstantPtr weight, recurrence;  ///< [1, gates * units, features or units]
  graph::ConstantPtr bias;                ///< [1, 2 * gates * units]
  int64_t units = 0;
};

/// `states` and `next` are the carried values of the body, before and after the turn: the output, and the cell's memory for LSTM.
std::optional<RecurrentCell> find_cell(const graph::Graph& body, const std::vector<ValueId>& states, const std::vector<ValueId>& next);

}  // namespace serin::formats::tf
