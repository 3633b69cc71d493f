// signature.h: a model as the protocols see it.
#pragma once

#include <span>
#include <string>

#include "runtime/engine/engine.h"
#include "runtime/graph/graph.h"
#include "runtime/protocol/infer.h"

namespace serin::serving {

/// `graph`: that of the model, which has the values of inputs that requests may leave out, and tells which inputs are parsed as serialized
/// tf.Example messages.
protocol::Signature signature_of(std::string model, std::span<const engine::TensorInfo> inputs, std::span<const engine::TensorInfo> outputs,
                                 const graph::Graph& graph);

}  // namespace serin::serving
