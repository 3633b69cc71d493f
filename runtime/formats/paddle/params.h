// params.h: the parameters of a program, from one file (.pdiparams, __params__) or from a file for each.
#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"
#include "runtime/formats/paddle/program.h"
#include "runtime/graph/constant.h"

namespace serin::formats::paddle {

using Parameters = std::map<std::string, graph::ConstantPtr, std::less<>>;  ///< by the names in the file

/// Tensors of one file, which has no names: they are in the order of the names. Large ones are recipes over the open file.
/// kCorrupt if their number, types or shapes are not those that the program declares; the message names the parameter.
Result<Parameters> read_combined(const std::string& path, const Program& program);

/// A file in `folder` for each parameter, under its name. kPermissionDenied for a name that leads elsewhere, and for links.
Result<Parameters> read_separate(const std::string& folder, const Program& program);

}  // namespace serin::formats::paddle
