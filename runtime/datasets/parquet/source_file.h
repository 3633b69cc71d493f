// source_file.h: a Source as a file of Arrow, and Arrow's errors as errors of Serin.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/datasets/parquet/plugin.h"

namespace serin::datasets::columnar {

/// Thread-safe for ReadAt(). Bytes outside the file are an error of Arrow, not a shorter read.
class SourceFile : public arrow::io::RandomAccessFile {
 public:
  explicit SourceFile(Source source) : source_(std::move(source)) {}

  const std::string& path() const { return source_.path; }
  /// The error of the last read that failed: its code and its words are better than those that Arrow makes of them.
  std::optional<Error> failure() const;

  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(source_.size); }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, bool allow_short, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes, bool allow_short) override;
  using arrow::io::RandomAccessFile::ReadAt;
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override;
  arrow::Status Seek(int64_t position) override;
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override;
  bool closed() const override { return closed_; }

 private:
  const Source source_;
  int64_t position_ = 0;
  bool closed_ = false;
  mutable Mutex mutex_;
  std::optional<Error> failure_ SERIN_GUARDED_BY(mutex_);
};

/// "data.parquet: row group 2: Unexpected end of stream", on one line. `place` may be empty.
Error error_of(const SourceFile& file, const std::string& place, const arrow::Status& status);

/// Calls `use`, which returns a Result, and makes an error of what Arrow throws: damaged files can do that anywhere.
template <class Use>
auto without_exceptions(const SourceFile& file, const std::string& place, const Use& use) -> decltype(use()) {
  try {
    return use();
  } catch (const std::bad_alloc&) {
    return error_of(file, place, arrow::Status::OutOfMemory("there is not enough memory for what it says to contain"));
  } catch (const std::exception& error) {
    return error_of(file, place, arrow::Status::Invalid(error.what()));
  }
}

}  // namespace serin::datasets::columnar
