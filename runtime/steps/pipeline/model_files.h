// model_files.h: the files that a step's settings name: labels, a vocabulary, a dictionary.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::steps {

/// Returns the path of a file by its name in the settings; kInvalidArgument if the model may not read it.
using FindFile = std::function<Result<std::string>(const std::string& name)>;

/// These read a name from the settings. Errors are at that node.
Result<std::string> find_file(const config::Node& name, const FindFile& files);
Result<std::vector<std::string>> read_lines_of(const config::Node& name, const FindFile& files);

}  // namespace serin::steps
