// file_image.cc: keeps the bytes of a file in private memory.

#include "runtime/formats/onnx/file_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/formats/onnx/skim.h"

namespace serin::formats::onnx {

FileImage::FileImage(std::shared_ptr<const std::byte> data, size_t size) : data_(std::move(data)), size_(size) {}
FileImage::FileImage(FileImage&&) noexcept = default;
FileImage::~FileImage() = default;

/// Memory for the file, which costs nothing before it is written.
Result<FileImage> FileImage::reserve(const InputFile& file, size_t limit) {
  const size_t size = file.size();
  if (size > limit) return Error{Code::kTooLarge, fmt::format("{}: {} bytes, over the limit of {}", file.path(), size, limit)};
  if (size == 0) return FileImage(nullptr, 0);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error(file.path(), fmt::format("{} bytes of memory are not available", size));
  const std::shared_ptr<std::byte> pages(static_cast<std::byte*>(memory), [size](std::byte* first) { ::munmap(first, size); });
  FileImage image(pages, size);
  image.pages_ = pages;
  return image;
}

Result<FileImage> FileImage::read(const std::string& path, size_t limit) {
  SERIN_TRY(const InputFile file, InputFile::open(path));
  SERIN_TRY(FileImage image, reserve(file, limit));
  SERIN_CHECK(file.read(0, {image.pages_.get(), image.size_}));
  SERIN_CHECK(file.unchanged());
  return image;
}

Result<FileImage> FileImage::read_model(const std::string& path, size_t limit) {
  SERIN_TRY(InputFile file, InputFile::open(path));
  SERIN_TRY(FileImage image, reserve(file, limit));
  SERIN_TRY(image.holes_, skim(file, {image.pages_.get(), image.size_}));
  SERIN_CHECK(file.unchanged());
  if (!image.holes_.empty()) image.file_ = std::make_shared<const InputFile>(std::move(file));
  return image;
}

Status FileImage::unchanged() const { return file_ ? file_->unchanged() : Status{}; }

std::optional<FileWindow> FileImage::left_out(Bytes bytes) const {
  const auto begin = static_cast<size_t>(bytes.data() - data_.get());
  const auto after = std::ranges::upper_bound(holes_, begin, {}, &Hole::begin);
  if (after == holes_.begin() || begin >= std::prev(after)->end) return std::nullopt;
  return FileWindow{file_, begin};
}

void FileImage::copy(Bytes bytes, std::byte* to) {
  std::memcpy(to, bytes.data(), bytes.size());
  release(bytes);
}

void FileImage::release(Bytes bytes) {
  if (!pages_) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto last = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace serin::formats::onnx
