// output_stream.h: writes a new file next to its place, and moves it there once it is whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::cli {

/// Not thread-safe. Without finish() the file at `path` stays as it was.
class OutputStream {
 public:
  static Result<OutputStream> create(const std::string& path);
  OutputStream(OutputStream&& other) noexcept;
  OutputStream& operator=(OutputStream&&) = delete;
  ~OutputStream();

  Status write(std::string_view bytes);  ///< buffered
  /// Replaces bytes that were written before.
  Status patch(uint64_t offset, std::string_view bytes);
  uint64_t size() const { return size_; }
  /// Syncs it to disk and renames it.
  Status finish();

 private:
  OutputStream(std::string path, std::string temporary, int file) : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  Status flush();
  std::string path_, temporary_, buffer_;
  int file_;
  uint64_t size_ = 0;
};

}  // namespace serin::cli
