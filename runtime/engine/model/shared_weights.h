// shared_weights.h: the weights that several models of one file have in common: the constants by their names there, and their packed forms.
//
// Models are read one after the other. A constant that both graphs have unchanged is one object in both, so its packed forms are found by its
// number. A constant that a pass computed from it (a filter with a BatchNormalization) belongs to one model.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "runtime/engine/engine.h"
#include "runtime/formats/tensorflow/savedmodel.h"

namespace serin::engine {

struct SharedWeights {
  formats::SharedConstants constants;
  const std::shared_ptr<kernels::PackedWeights> packed = std::make_shared<kernels::PackedWeights>();
};

}  // namespace serin::engine
