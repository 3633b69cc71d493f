// replaceable_inputs.h: the inputs of a model whose stored value a run may replace.
#pragma once

#include <set>
#include <string>

namespace serin::formats {

/// Names of inputs for which the file stores a value that a run may replace (an initializer that is also declared as an input). The value
/// is in Graph::standard_inputs. Other such values are constants, and are used for computation at load.
using ReplaceableInputs = std::set<std::string, std::less<>>;

}  // namespace serin::formats
