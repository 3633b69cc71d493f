// hdf5_bytes.h: parts of an HDF5 file, read when they are needed, each checked against the file's size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"

namespace serin::formats::keras {

inline constexpr uint64_t kNoAddress = UINT64_MAX;

/// Little-endian fields one after the other. Reading beyond the end gives zeros and is remembered.
class Hdf5Fields {
 public:
  explicit Hdf5Fields(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}

  uint64_t number(size_t width) {
    uint64_t value = 0;
    if (left() < width) {
      overrun_ = true;
      at_ = bytes_.size();
      return 0;
    }
    for (size_t i = 0; i < width; ++i) value |= uint64_t{bytes_[at_ + i]} << (8 * i);
    at_ += width;
    return value;
  }
  uint64_t address() { return number(8); }
  bool sign(std::string_view expected) {
    if (left() < expected.size()) return false;
    const bool same = std::string_view(reinterpret_cast<const char*>(bytes_.data()) + at_, expected.size()) == expected;
    at_ += expected.size();
    return same;
  }
  std::string text(size_t size) {
    if (left() < size) {
      overrun_ = true;
      return {};
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }
  void skip(size_t size) { (void)text(size); }
  Hdf5Fields part(size_t size) {
    if (left() < size) {
      overrun_ = true;
      return Hdf5Fields({});
    }
    Hdf5Fields part(std::vector<uint8_t>(bytes_.begin() + static_cast<int64_t>(at_), bytes_.begin() + static_cast<int64_t>(at_ + size)));
    at_ += size;
    return part;
  }
  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }
  bool overrun() const { return overrun_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
  bool overrun_ = false;
};

/// The file: addresses count from its begin.
class Hdf5Source {
 public:
  Hdf5Source(FileWindow window, size_t size) : window_(std::move(window)), size_(size) {}

  size_t size() const { return size_; }
  size_t begin() const { return window_.offset; }
  /// kCorrupt if the part does not lie in the file; kTooLarge once the parts that were read are more than the whole file several times over.
  Result<Hdf5Fields> read(uint64_t address, uint64_t size);

 private:
  FileWindow window_;
  size_t size_;
  uint64_t read_ = 0;
};

/// One link of a group: a name, and where the object begins.
struct Hdf5Link {
  std::string name;
  uint64_t address = kNoAddress;  ///< kNoAddress: it points elsewhere, and is not followed
};

/// A Link message (message type 6).
Hdf5Link read_hdf5_link(Hdf5Fields& in);

/// Links of a group that has too many for its header: a heap of Link messages, and a tree of the places in it. Errors: kCorrupt, kUnsupported.
Result<std::vector<Hdf5Link>> read_dense_links(Hdf5Source& source, uint64_t heap, uint64_t tree);

}  // namespace serin::formats::keras
