// file_image.h: a whole model file in memory that nobody else can change.
//
// Not a mapping of the file: whoever overwrites it in place would change the weights of a live model, and whoever truncates it would kill the
// process with SIGBUS. The pages are anonymous and private, and can be given back one tensor at a time as the tensors are copied out to memory
// of their own. Large weights do not come here at all (skim.h): they are read from the file each time that somebody packs them.
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
  /// Takes a descriptor; refuses what is not a regular file.
  static Result<InputFile> adopt(int fd, std::string path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  size_t size() const { return static_cast<size_t>(status_.st_size); }
  size_t links() const { return static_cast<size_t>(status_.st_nlink); }
  /// Fills `bytes` from `offset` on. kCorrupt where the file ends before that.
  Status read(size_t offset, std::span<std::byte> bytes) const;
  /// kUnavailable where the file was written to since it was opened: what was read may be half of each. A file that was renamed over it, or
  /// deleted, is another one and does no harm.
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

  /// Those that the file had when it was opened, or an error.
  Status read(std::span<std::byte> bytes) const;
};

struct Hole;

class FileImage {
 public:
  static Result<FileImage> read(const std::string& path, size_t limit);
  /// An ONNX model, whose large weights wait in the file.
  static Result<FileImage> read_model(const std::string& path, size_t limit);
  /// Memory of the caller's, which stays as it is.
  FileImage(std::shared_ptr<const std::byte> data, size_t size);
  FileImage(FileImage&& other) noexcept;
  ~FileImage();

  Bytes bytes() const { return {data_.get(), size_}; }
  /// Where these bytes were left out.
  std::optional<FileWindow> left_out(Bytes bytes) const;
  /// Copies what was not; it is not needed here any more.
  void copy(Bytes bytes, std::byte* to);
  /// kUnavailable where weights waited in the file and it was written to meanwhile.
  Status unchanged() const;

 private:
  static Result<FileImage> reserve(const InputFile& file, size_t limit);
  /// These bytes are not needed any more: their pages go back to the system and read as zeros. Nothing happens to memory of the caller's.
  void release(Bytes bytes);

  std::shared_ptr<std::byte> pages_;  ///< what data_ is, where the memory is ours
  std::shared_ptr<const std::byte> data_;
  size_t size_;
  std::shared_ptr<const InputFile> file_;  ///< where the holes are
  std::vector<Hole> holes_;
};

/// "cannot be opened: No such file or directory", with the code that errno stands for.
Error system_error(const std::string& path, std::string_view step);

}  // namespace serin::formats::onnx
