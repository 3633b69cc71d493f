// protobuf_encoder.h: writes protobuf by hand, so that a test can say exactly which bytes a message has, wrong ones included.
//
//   std::string model = Encoder().number(1, 8).message(7, graph).message(8, Encoder().number(2, 17)).str();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace serin::test {

class Encoder {
 public:
  Encoder& number(uint32_t field, int64_t value) { return varint(uint64_t{field} << 3).varint(static_cast<uint64_t>(value)); }
  Encoder& real(uint32_t field, float value) {
    varint(uint64_t{field} << 3 | 5);
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  Encoder& bytes(uint32_t field, std::string_view value) { return varint(uint64_t{field} << 3 | 2).varint(value.size()).raw(value); }
  Encoder& message(uint32_t field, const Encoder& value) { return bytes(field, value.out_); }
  Encoder& raw(std::string_view value) {
    out_ += value;
    return *this;
  }
  Encoder& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

}  // namespace serin::test
