// wire.cc: reads protobuf's tags, varints and lengths, each checked against the bytes that are left.
//
// A field is a varint tag (number << 3 | wire type) and a value: a varint, 4 or 8 bytes, or a length and so many bytes. Groups (wire types 3
// and 4) have been out of use since before ONNX; they are the one construct that would need recursion to skip, and are refused.

#include "runtime/base/wire.h"

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace serin::wire {

void Decoding::fail(Code code, const std::byte* at, std::string_view what) {
  if (error) return;
  error = Error{code, fmt::format("byte {}: {}", at - begin, what)};
}

Message::Message(Decoding& decoding, std::string_view type, Bytes bytes)
    : decoding_(&decoding), type_(type), body_(bytes), at_(bytes.data()), end_(bytes.data() + bytes.size()), field_start_(bytes.data()) {
  if (++decoding.messages > decoding.message_limit)
    decoding.fail(Code::kTooLarge, at_, fmt::format("more than {} parts", decoding.message_limit));
}

bool Message::next() {
  if (decoding_->error || at_ == end_) return false;
  field_start_ = at_;
  field_ = 0;
  const uint64_t tag = varint(at_, end_);
  if (decoding_->error) return false;
  if (tag >> 32 != 0 || tag >> 3 == 0) {
    fail(fmt::format("no such field: tag {}", tag));
    return false;
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  const auto left = [&] { return static_cast<uint64_t>(end_ - at_); };
  switch (wire_) {
    case Wire::kVarint: scalar_ = varint(at_, end_); break;
    case Wire::kFixed64:
    case Wire::kFixed32: {
      const size_t size = wire_ == Wire::kFixed64 ? 8 : 4;
      if (left() < size) {
        fail(fmt::format("{} bytes are left of a number of {}", left(), size));
        return false;
      }
      scalar_ = 0;
      std::memcpy(&scalar_, at_, size);
      at_ += size;
      break;
    }
    case Wire::kBytes: {
      const uint64_t length = varint(at_, end_);
      if (decoding_->error) return false;
      if (length > left()) {
        fail(fmt::format("length {}, but {} bytes are left: cut short or damaged", length, left()));
        return false;
      }
      bytes_ = Bytes(at_, static_cast<size_t>(length));
      at_ += length;
      break;
    }
    case Wire::kStartGroup:
    case Wire::kEndGroup: fail("a group, which is an obsolete form"); return false;
    default: fail(fmt::format("wire type {} does not exist", tag & 7)); return false;
  }
  return !decoding_->error;
}

uint64_t Message::varint(const std::byte*& at, const std::byte* end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at == end) {
      fail("the bytes end within a number");
      return 0;
    }
    const auto byte = static_cast<uint64_t>(*at++);
    if (shift == 63 && byte > 1) break;  // bits beyond the 64th, or an eleventh byte
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number of more than 64 bits");
  return 0;
}

bool Message::expect(Wire wire) {
  if (decoding_->error) return false;
  if (wire_ == wire) return true;
  fail(fmt::format("wire type {} where {} belongs", static_cast<int>(wire_), static_cast<int>(wire)));
  return false;
}

int64_t Message::integer() { return expect(Wire::kVarint) ? static_cast<int64_t>(scalar_) : 0; }

float Message::number() {
  float value = 0;
  if (expect(Wire::kFixed32)) std::memcpy(&value, &scalar_, sizeof value);
  return value;
}

Bytes Message::bytes() { return expect(Wire::kBytes) ? bytes_ : Bytes{}; }

std::string_view Message::chars() {
  const Bytes window = bytes();
  return {reinterpret_cast<const char*>(window.data()), window.size()};
}

std::string_view Message::text() {
  const std::string_view text = chars();
  if (is_utf8(text)) return text;
  fail("text that is not UTF-8");
  return {};
}

Message Message::message(std::string_view type) { return Message(*decoding_, type, bytes()); }

Message& Message::once() {
  if (field_ >= 64) return *this;
  const uint64_t bit = uint64_t{1} << field_;
  if (seen_ & bit) fail("comes twice");
  seen_ |= bit;
  return *this;
}

void Message::fail(std::string_view what) {
  decoding_->fail(Code::kCorrupt, field_start_,
                  field_ ? fmt::format("field {} of {}: {}", field_, type_, what) : fmt::format("{}: {}", type_, what));
}

}  // namespace serin::wire
