// file_image.h: a whole model file in memory that other processes cannot change.
//
// It is not a mapping of the file. A process that overwrites a mapped file would change the weights of a live model, and one that truncates
// it would kill this process with SIGBUS. The pages are anonymous and private. They are released one tensor at a time, as the tensors are
// copied to their own memory. Large weights are not loaded here (skim.h): they are read from the file whenever they are packed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/wire.h"
#include "runtime/formats/input_file.h"

namespace serin::formats::onnx {

using wire::Bytes;

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

}  // namespace serin::formats::onnx
