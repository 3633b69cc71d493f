// recurrent_operators.cc: which operators of this family are read: RNN, GRU, LSTM, attention and what transformers add.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily recurrent_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
