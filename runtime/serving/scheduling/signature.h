// signature.h: a model as the protocols see it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/graph/graph.h"
#include "runtime/protocol/infer.h"

namespace serin::serving {

/// `graph`: that of the model, which has the values of inputs that requests may leave out, and tells which inputs are parsed as serialized
/// tf.Example messages.
protocol::Signature signature_of(std::string model, std::span<const engine::TensorInfo> inputs, std::span<const engine::TensorInfo> outputs,
                                 const graph::Graph& graph);
std::vector<protocol::TensorSpec> specs_of(std::span<const engine::TensorInfo> infos);

/// The rows of a request whose inputs were checked against the signature, axis 0 of which counts rows. kInvalidArgument: the inputs disagree, or
/// there is no row.
Result<int64_t> rows_of_request(const protocol::Signature& signature, std::span<const TensorView> inputs);

}  // namespace serin::serving
