// file.h: what Serin does with small files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin {

/// The whole file. Errors: kNotFound, kPermissionDenied, kTooLarge (over `limit`), kIo; a directory, FIFO or device is kInvalidArgument.
Result<std::string> read_file(const std::string& path, size_t limit);

/// The same of what may also be a pipe, as a shell's `<(...)` is: all that comes out of it. kDeadlineExceeded where nothing comes for ten seconds.
Result<std::string> read_file_or_pipe(const std::string& path, size_t limit);

/// What tells that a file is another one or has been written to; all zero where there is none. Links are followed.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  static FileStamp of(const std::string& path);
  bool operator==(const FileStamp&) const = default;
};

/// Replaces `path` in one step: readers see the old contents or the new, never a part (temporary file beside it, fsync, rename).
Status write_file_atomically(const std::string& path, std::string_view contents);

/// The folder that holds the running program, without a trailing slash.
std::string program_folder();

}  // namespace serin
