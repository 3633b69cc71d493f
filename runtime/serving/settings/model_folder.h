// model_folder.h: reads names in a folder, and lists what is in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::serving {

/// Parses a decimal number without leading zero, as versions are named in Triton and TensorFlow Serving.
std::optional<uint64_t> parse_version(std::string_view name);
/// Parses a decimal number, with or without leading zeros: TensorFlow Serving's examples have 00000123.
std::optional<uint64_t> version_of_folder(std::string_view name);

/// The direct entries of a folder, sorted.
struct Listing {
  std::vector<std::string> folders, files;
};

/// kNotFound: there is no such folder; any other code: "cannot be listed: Permission denied".
Result<Listing> list_folder(const std::string& folder);

/// Whether this value of errno says that there is no such file. A link that leads nowhere, or to itself, does not exist either.
bool says_not_there(int error);
/// Makes "<what>: Permission denied" of a value of errno, with its code.
Error file_error(std::string_view what, int error);

}  // namespace serin::serving
