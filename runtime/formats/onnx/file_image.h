// file_image.h: a whole model file in memory that other processes cannot change.
//
// It is not a mapping of the file. A process that overwrites a mapped file would change the weights of a live model, and one that truncates
// it would kill this process with SIGBUS. The pages are anonymous and private. They are released one tensor at a time, as the tensors are
// copied to their own memory. Large weights are not loaded here (skim.h): they are read from the file whenever they are packed.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"

namespace serin::formats::onnx {

using wire::Bytes;

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

struct Hole;

class FileImage {
 public:
  static Result<FileImage> read(const std::string& path, size_t limit);
  /// Reads an ONNX model; its large weights stay in the file.
  static Result<FileImage> read_model(const std::string& path, size_t limit);
  /// Uses the caller's memory and does not change it.
  FileImage(std::shared_ptr<const std::byte> data, size_t size);
  FileImage(FileImage&& other) noexcept;
  ~FileImage();

  Bytes bytes() const { return {data_.get(), size_}; }
  /// The location in the file if these bytes were left out.
  std::optional<FileWindow> left_out(Bytes bytes) const;
  /// Copies the bytes, from the file if they were left out, and releases them here.
  void copy(Bytes bytes, std::byte* to);
  /// kUnavailable if weights stayed in the file and it was written to meanwhile.
  Status unchanged() const;

 private:
  static Result<FileImage> reserve(const InputFile& file, size_t limit);
  /// Releases bytes that are no longer needed: their pages return to the system and read as zeros. The caller's memory is not changed.
  void release(Bytes bytes);

  std::shared_ptr<std::byte> pages_;  ///< the memory of data_, if this object owns it
  std::shared_ptr<const std::byte> data_;
  size_t size_;
  std::shared_ptr<const InputFile> file_;  ///< file that contains the holes
  std::vector<Hole> holes_;
};

/// Makes "cannot be opened: No such file or directory", with the code that corresponds to errno.
Error system_error(const std::string& path, std::string_view step);

}  // namespace serin::formats::onnx
