// recurrent_rules.cc: shape rules of one family: RNN, GRU, LSTM, attention and what transformers add.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> recurrent_rules() { return {}; }

}  // namespace serin::graph
