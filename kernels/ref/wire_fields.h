// wire_fields.h: the fields of a message of protobuf, for kernels that read messages. runtime/base/wire.h is the reader for everything else.
//
//   Fields in(message);
//   while (in.next())
//     if (in.number() == 1 && in.wire() == Fields::kBytes) use(in.bytes());
//   if (in.damaged()) ...
//
// The bytes are a client's: each length is checked against the bytes left. Nothing is copied.
#pragma once

#include <cstdint>
#include <string_view>

namespace serin::kernels::ref {

class Fields {
 public:
  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit Fields(std::string_view message) : rest_(message) {}

  /// Goes to the next field; false at the end, and where the message is damaged.
  bool next() {
    uint64_t tag = 0;
    if (damaged_ || rest_.empty()) return false;
    if (!varint(rest_, tag) || tag >> 3 == 0 || tag >> 32 != 0) return damage();
    number_ = static_cast<uint32_t>(tag >> 3);
    wire_ = static_cast<Wire>(tag & 7);
    switch (wire_) {
      case kVarint: return varint(rest_, scalar_) || damage();
      case kFixed64: return take(8);
      case kFixed32: return take(4);
      case kBytes: {
        uint64_t size = 0;
        return varint(rest_, size) ? take(size) : damage();
      }
    }
    return damage();  // groups
  }
  bool damaged() const { return damaged_; }
  uint32_t number() const { return number_; }
  Wire wire() const { return wire_; }
  uint64_t scalar() const { return scalar_; }
  std::string_view bytes() const { return bytes_; }

  static bool varint(std::string_view& from, uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 70 && !from.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(from.front());
      from.remove_prefix(1);
      if (shift == 63 && byte > 1) return false;
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  bool damage() {
    damaged_ = true;
    return false;
  }
  bool take(uint64_t size) {
    if (size > rest_.size()) return damage();
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_, bytes_;
  uint64_t scalar_ = 0;
  uint32_t number_ = 0;
  Wire wire_ = kVarint;
  bool damaged_ = false;
};

}  // namespace serin::kernels::ref
