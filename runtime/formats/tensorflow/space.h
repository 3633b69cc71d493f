// space.h: SpaceToBatchND and BatchToSpaceND, between which TensorFlow writes a dilated convolution.
#pragma once

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::tf {

void import_space_to_batch(NodeImport& n, graph::Op op);
void import_batch_to_space(NodeImport& n, graph::Op op);

// Convolutions of lines get an axis in front for the time being.
void expand_line(NodeImport& n);
void squeeze_line(NodeImport& n);

}  // namespace serin::formats::tf
