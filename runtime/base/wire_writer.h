// wire_writer.h: writes protobuf's wire format into a string; header only. The reader is wire.h.
//
//   wire::write_text(out, 1, "name");
//   wire::write_message(out, 5, [&](std::string& inner) { wire::write_integer(inner, 2, 7); });
//
// Fields with the default value of their type are omitted, as in proto3. Elements of repeated fields count even if empty: use
// write_bytes().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace serin::wire {

inline void write_varint(std::string& out, uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
}
inline void write_tag(std::string& out, uint32_t field, uint32_t wire_type) { write_varint(out, field << 3 | wire_type); }

/// For int32, int64, bool and enumerations.
inline void write_integer(std::string& out, uint32_t field, int64_t value) {
  if (value == 0) return;
  write_tag(out, field, 0);
  write_varint(out, static_cast<uint64_t>(value));
}
inline void write_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  write_tag(out, field, 2);
  write_varint(out, bytes.size());
  out += bytes;
}
inline void write_text(std::string& out, uint32_t field, std::string_view text) {
  if (!text.empty()) write_bytes(out, field, text);
}
/// Writes the message in place, then inserts its length and moves the message behind it. For small messages.
template <class Write>
void write_message(std::string& out, uint32_t field, const Write& write) {
  write_tag(out, field, 2);
  const size_t at = out.size();
  write(out);
  std::string length;
  write_varint(length, out.size() - at);
  out.insert(at, length);
}

}  // namespace serin::wire
