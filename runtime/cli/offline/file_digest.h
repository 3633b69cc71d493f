// file_digest.h: what a run depends on: its files by stamps, which cost nothing, or by their bytes.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::cli {

/// SHA-256 of name, size and time of the last change of each file: differs when a file was written to.
Result<std::string> stamp_of(const std::vector<std::string>& files);

/// SHA-256, as 64 hexadecimal digits. One file: of its bytes, as sha256sum prints it. Several: of the lines "<digest>  <name>\n", as sha256sum
/// prints them in the folder that is common to them.
Result<std::string> digest_of(const std::vector<std::string>& files);

}  // namespace serin::cli
