// file.h: the three things Serin does with small files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin {

/// The whole file. Errors: kNotFound, kPermissionDenied, kTooLarge (over `limit`), kIo; a directory, FIFO or device is kInvalidArgument.
Result<std::string> read_file(const std::string& path, size_t limit);

/// Replaces `path` in one step: readers see the old contents or the new, never a part (temporary file beside it, fsync, rename).
Status write_file_atomically(const std::string& path, std::string_view contents);

/// The folder that holds the running program, without a trailing slash.
std::string program_folder();

}  // namespace serin
