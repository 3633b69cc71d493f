#include "runtime/datasets/parquet/source_file.h"

#include <arrow/buffer.h>
#include <fmt/format.h>

#include <algorithm>

namespace serin::datasets::columnar {

std::optional<Error> SourceFile::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

arrow::Result<int64_t> SourceFile::ReadAt(int64_t position, int64_t bytes, bool allow_short, void* out) {
  const auto size = static_cast<int64_t>(source_.size);
  if (position < 0 || bytes < 0 || position > size || (!allow_short && bytes > size - position))
    return arrow::Status::IOError("it refers to bytes outside of the file");
  const int64_t taken = std::min(bytes, size - position);
  const Status read = source_.read(static_cast<uint64_t>(position), static_cast<size_t>(taken), static_cast<char*>(out));
  if (read) return taken;
  const MutexLock lock(mutex_);
  failure_ = read.error();
  return arrow::Status::IOError(read.error().message);
}

arrow::Result<std::shared_ptr<arrow::Buffer>> SourceFile::ReadAt(int64_t position, int64_t bytes, bool allow_short) {
  const auto size = static_cast<int64_t>(source_.size);
  if (position < 0 || bytes < 0 || position > size) return arrow::Status::IOError("it refers to bytes outside of the file");
  // Not `bytes` themselves: a damaged file may ask for any number.
  ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(std::min(bytes, size - position)));
  ARROW_ASSIGN_OR_RAISE(const int64_t taken, ReadAt(position, bytes, allow_short, buffer->mutable_data()));
  ARROW_RETURN_NOT_OK(buffer->Resize(taken, /*shrink_to_fit=*/false));
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

arrow::Result<int64_t> SourceFile::Read(int64_t bytes, void* out) {
  ARROW_ASSIGN_OR_RAISE(const int64_t taken, ReadAt(position_, bytes, /*allow_short=*/true, out));
  position_ += taken;
  return taken;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> SourceFile::Read(int64_t bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes, /*allow_short=*/true));
  position_ += buffer->size();
  return buffer;
}

arrow::Status SourceFile::Seek(int64_t position) {
  position_ = position;
  return arrow::Status::OK();
}

arrow::Status SourceFile::Close() {
  closed_ = true;
  return arrow::Status::OK();
}

Error error_of(const SourceFile& file, const std::string& place, const arrow::Status& status) {
  if (auto failure = file.failure()) return *std::move(failure);
  std::string text = status.message().empty() ? status.CodeAsString() : status.message();
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' '; }, ' ');
  const Code code = status.IsNotImplemented() ? Code::kUnsupported : status.IsOutOfMemory() ? Code::kTooLarge : Code::kCorrupt;
  return {code, fmt::format("{}: {}{}{}", file.path(), place, place.empty() ? "" : ": ", text)};
}

}  // namespace serin::datasets::columnar
