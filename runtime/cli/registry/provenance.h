// provenance.h: what a registry remembers with a version: the person or program, the origin, the tensors of the model.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/registry/registry.h"

namespace serin::cli {

/// The person or program at the other end of the terminal, as far as the machine knows: "user@host".
std::string user_and_host();

/// A JSON object of schema "serin.model/1" with "inputs" and "outputs": lists of "name: f32[batch,64]". The model is read, not run.
/// Errors: those of engine::read_model().
Result<std::string> details_of(const std::string& model);

/// Of flags KEY=VALUE. kInvalidArgument: another form, or a key that is given twice.
Result<registry::Origin> origin_of(const std::vector<std::string>& given);

}  // namespace serin::cli
