// recurrent_table.cc: which operators of this family have a reference kernel: RNN, GRU, LSTM, attention and what transformers add.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> recurrent_kernels() { return {}; }

}  // namespace serin::kernels::ref
