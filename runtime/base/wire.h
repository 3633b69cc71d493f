// wire.h: reads protobuf's wire format from untrusted bytes.
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
// Nothing is copied: texts and bytes are views of the input. Decoding keeps the first error, which ends every loop. Readers therefore need
// no checks of their own, and callers discard values read after the error. Unknown fields are skipped, as the format requires.
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

/// State that all messages of one file or request share.
struct Decoding {
  const std::byte* begin = nullptr;  ///< byte 0: offsets in errors count from here
  size_t message_limit = SIZE_MAX;   ///< bounds the number of messages: a two-byte message takes some hundred bytes once decoded
  int nesting_limit = 64;            ///< for graphs within graphs
  std::optional<Error> error;        ///< the first error
  size_t messages = 0;
  int nesting = 0;

  void fail(Code code, const std::byte* at, std::string_view what);
};

/// Reads one message, field by field.
class Message {
 public:
  Message(Decoding& decoding, std::string_view type, Bytes bytes);

  /// Goes to the next field; returns false at the end and after an error.
  bool next();
  uint32_t field() const { return field_; }

  // These return the value of the field. A request for another type than the file has is an error of the file.
  int64_t integer();         ///< int32, int64, uint64, enumerations
  float number();            ///< float
  Bytes bytes();             ///< bytes
  std::string_view chars();  ///< bytes, as characters
  std::string_view text();   ///< string: must be UTF-8
  Message message(std::string_view type);

  // Reads repeated numbers in packed or expanded form.
  template <class F>
  void each_integer(F&& take);
  template <class T, class F>
  void each_fixed(F&& take);  // T: float or double

  /// Marks a field that may occur once; a second occurrence is an error. (With protobuf the last one wins, which hides what a checker saw.)
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
  uint64_t seen_ = 0;  // bit i: field i has occurred (numbers below 64)
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
    std::memcpy(&value, &scalar_, sizeof(T));  // little-endian, like every supported machine
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
