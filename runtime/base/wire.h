// wire.h: protobuf's wire format, read from bytes that somebody hostile may have written.
//
//   Message in(decoding, "NodeProto", bytes);
//   while (in.next()) {
//     switch (in.field()) {
//       case 1: node.inputs.push_back(in.text()); break;
//       case 5: node.attributes.push_back(read_attribute(in.message("AttributeProto"))); break;
//     }
//   }
//   if (decoding.error) ...
//
// Nothing is copied: texts and bytes are windows of the input. The first mistake is kept in Decoding and ends every loop, so that readers
// need no checks of their own; what they return after that is discarded. Unknown fields are skipped, as the format demands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::wire {

using Bytes = std::span<const std::byte>;

/// What all messages of one file, or of one request, share.
struct Decoding {
  const std::byte* begin = nullptr;  ///< byte 0: offsets in errors count from here
  size_t message_limit = SIZE_MAX;   ///< a two-byte message costs some hundred bytes once decoded: their number is bounded
  int nesting_limit = 64;            ///< graphs within graphs
  std::optional<Error> error;        ///< the first mistake
  size_t messages = 0;
  int nesting = 0;

  void fail(Code code, const std::byte* at, std::string_view what);
};

/// One message, field by field.
class Message {
 public:
  Message(Decoding& decoding, std::string_view type, Bytes bytes);

  /// Goes to the next field; false at the end and after a mistake.
  bool next();
  uint32_t field() const { return field_; }

  // The value of the field. Asking for another kind than the file has is a mistake of the file.
  int64_t integer();         ///< int32, int64, uint64, enumerations
  float number();            ///< float
  Bytes bytes();             ///< bytes
  std::string_view chars();  ///< bytes, as characters
  std::string_view text();   ///< string: must be UTF-8
  Message message(std::string_view type);

  // Repeated numbers, packed or not.
  template <class F>
  void each_integer(F&& take);
  template <class T, class F>
  void each_fixed(F&& take);  // T: float or double

  /// A field that may come once has come: a second one is a mistake (protobuf lets the last one win, which hides what a checker saw).
  Message& once();
  void fail(std::string_view what);

  Decoding& decoding() const { return *decoding_; }
  const std::byte* position() const { return field_start_; }
  Bytes body() const { return body_; }

 private:
  enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kStartGroup = 3, kEndGroup = 4, kFixed32 = 5 };

  uint64_t varint(const std::byte*& at, const std::byte* end);
  bool expect(Wire wire);

  Decoding* decoding_;
  std::string_view type_;
  Bytes body_;
  const std::byte* at_;  // behind the current field
  const std::byte* end_;
  const std::byte* field_start_;
  uint32_t field_ = 0;
  uint64_t seen_ = 0;  // bit i: field i has come (numbers below 64)
  Wire wire_ = Wire::kVarint;
  uint64_t scalar_ = 0;
  Bytes bytes_;
};

template <class F>
void Message::each_integer(F&& take) {
  if (wire_ != Wire::kBytes) {
    take(integer());
    return;
  }
  const std::byte* at = bytes_.data();
  const std::byte* const end = at + bytes_.size();
  while (at < end && !decoding_->error) {
    const uint64_t value = varint(at, end);
    if (!decoding_->error) take(static_cast<int64_t>(value));
  }
}

template <class T, class F>
void Message::each_fixed(F&& take) {
  constexpr Wire kWire = sizeof(T) == 4 ? Wire::kFixed32 : Wire::kFixed64;
  T value;
  if (wire_ != Wire::kBytes) {
    if (!expect(kWire)) return;
    std::memcpy(&value, &scalar_, sizeof(T));  // little-endian, as every machine we build for
    take(value);
    return;
  }
  if (bytes_.size() % sizeof(T) != 0) return fail("packed numbers that do not fill their length");
  for (size_t i = 0; i < bytes_.size(); i += sizeof(T)) {
    std::memcpy(&value, bytes_.data() + i, sizeof(T));
    take(value);
  }
}

}  // namespace serin::wire
