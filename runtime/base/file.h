// file.h: functions that read and write small files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin {

/// Reads the whole file. Errors: kNotFound, kPermissionDenied, kTooLarge (over `limit`), kIo. A directory, FIFO or device is
/// kInvalidArgument.
Result<std::string> read_file(const std::string& path, size_t limit);

/// The same for a secret: kPermissionDenied as well if users other than the owner may read the file.
Result<std::string> read_secret_file(const std::string& path, size_t limit);

/// read_file() for a path that may also be a pipe, such as a shell's `<(...)`; reads the pipe to its end. Returns kDeadlineExceeded if no data
/// comes for ten seconds.
Result<std::string> read_file_or_pipe(const std::string& path, size_t limit);

/// The lines of the whole file, without their ends ("\n" or "\r\n"). Errors are those of read_file().
Result<std::vector<std::string>> read_lines(const std::string& path, size_t limit);

/// Identifies the contents of a file: another stamp means another file or a later write. All zero if there is no file. Links are followed.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  static FileStamp of(const std::string& path);
  bool operator==(const FileStamp&) const = default;
};

/// Replaces `path` in one step: readers see the old contents or the new, never a part. It writes a temporary file in the same folder, calls
/// fsync and renames it.
Status write_file_atomically(const std::string& path, std::string_view contents, unsigned mode = 0644);

/// Writes all bytes to a descriptor. False: errno says why.
bool write_all(int descriptor, std::string_view bytes);
/// The same from that byte of the file on.
bool write_at(int descriptor, uint64_t offset, std::string_view bytes);
/// Reads from that byte on until `bytes` is full or the file ends, and returns how many they are. Nothing: errno says why.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<char> bytes);

/// The folder that contains the running program, without a trailing slash.
std::string program_folder();

}  // namespace serin
