// token_file.h: reads the file of --token-file. A token never comes from the command line, which every user of the machine can read.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace serin::cli {

/// The token without spaces and line ends behind it; empty: `text` is. `name` stands in the error. kInvalidArgument: it is more than one line, or
/// has other than visible ASCII characters.
Result<std::string> token_in(std::string text, const std::string& name);

/// The token of a file. An empty path is no token. Errors begin with the flag.
Result<std::string> read_token_file(const std::string& file);

}  // namespace serin::cli
