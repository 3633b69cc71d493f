// input_file.h: a regular file, open for reading, that tells whether it was written to meanwhile.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace serin::formats {

/// A regular file, open for reading.
class InputFile {
 public:
  /// Errors: kNotFound, kPermissionDenied, kInvalidArgument (a directory, FIFO, device ...), kIo (a loop of links ...).
  static Result<InputFile> open(const std::string& path);
  /// Takes a descriptor; refuses anything except a regular file.
  static Result<InputFile> adopt(int fd, std::string path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  size_t size() const { return static_cast<size_t>(status_.st_size); }
  size_t links() const { return static_cast<size_t>(status_.st_nlink); }
  /// Fills `bytes` from `offset` on. kCorrupt if the file ends before that.
  Status read(size_t offset, std::span<std::byte> bytes) const;
  /// All bytes. kTooLarge over `limit`; kUnavailable as in `unchanged`.
  Result<std::vector<std::byte>> read_all(size_t limit) const;
  /// kUnavailable if the file was written to since it was opened: the data may mix two versions. A file that was renamed over it is another
  /// file, and a deleted file stays readable; both are harmless.
  Status unchanged() const;

 private:
  InputFile(int fd, std::string path, const struct stat& status) : fd_(fd), path_(std::move(path)), status_(status) {}

  int fd_;
  std::string path_;
  struct stat status_;
};

/// Bytes of a file that stays open.
struct FileWindow {
  std::shared_ptr<const InputFile> file;
  size_t offset;

  /// Reads the bytes that the file had when it was opened, or returns an error.
  Status read(std::span<std::byte> bytes) const;
};

/// Makes "cannot be opened: No such file or directory", with the code that corresponds to errno.
Error system_error(const std::string& path, std::string_view step);

}  // namespace serin::formats
