#include "runtime/protocol/json/json_write.h"

#include <simdjson.h>

#include <algorithm>

#include "kernels/float16.h"

namespace serin::protocol {
namespace {

template <class T>
char* write_value(char* out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::string_view word = value ? "true" : "false";
    return out + word.copy(out, word.size());
  } else if constexpr (sizeof(T) == 2 && std::is_class_v<T>) {
    return write_number(out, kernels::to_float(value));
  } else {
    return write_number(out, value);
  }
}

/// By way of room for many at a time, so that the string is touched seldom.
template <class T>
void append_list(std::string& out, const TensorView& tensor, int64_t first, int64_t last) {
  constexpr int64_t kAtOnce = 256;
  const T* const values = tensor.as<const T>();
  char text[kAtOnce * kNumberBytes];
  while (first < last) {
    const int64_t end = std::min(last, first + kAtOnce);
    char* at = text;
    while (first < end) {
      if constexpr (std::is_same_v<T, float>) {  // with a comma behind each: the last stays
        first += static_cast<int64_t>(write_floats(values + first, static_cast<size_t>(std::min(end, last - 1) - first), at));
        if (first == end) break;
      }
      at = write_value(at, values[first]);
      if (++first < last) *at++ = ',';
    }
    out.append(text, at);
  }
}

void append_texts(std::string& out, const TensorView& tensor, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    if (i > first) out += ',';
    append_text(out, tensor.as<const std::string>()[i]);
  }
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (byte < 0x20)
      (((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15]);
    else
      out += c;
  }
  out += '"';
}

void append_text(std::string& out, std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return append_string(out, text);
  std::string widened;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      widened += c;
    else
      (widened += static_cast<char>(0xc0 | byte >> 6)) += static_cast<char>(0x80 | (byte & 0x3f));
  }
  append_string(out, widened);
}

void append_elements(std::string& out, const TensorView& tensor, int64_t first, int64_t last) {
  switch (tensor.dtype) {
    case DType::kBool: return append_list<bool>(out, tensor, first, last);
    case DType::kInt8: return append_list<int8_t>(out, tensor, first, last);
    case DType::kInt16: return append_list<int16_t>(out, tensor, first, last);
    case DType::kInt32: return append_list<int32_t>(out, tensor, first, last);
    case DType::kInt64: return append_list<int64_t>(out, tensor, first, last);
    case DType::kUInt8: return append_list<uint8_t>(out, tensor, first, last);
    case DType::kUInt16: return append_list<uint16_t>(out, tensor, first, last);
    case DType::kUInt32: return append_list<uint32_t>(out, tensor, first, last);
    case DType::kUInt64: return append_list<uint64_t>(out, tensor, first, last);
    case DType::kFloat32: return append_list<float>(out, tensor, first, last);
    case DType::kFloat64: return append_list<double>(out, tensor, first, last);
    case DType::kString: return append_texts(out, tensor, first, last);
    case DType::kFloat16: return append_list<kernels::Half>(out, tensor, first, last);
    case DType::kBFloat16: return append_list<kernels::BFloat16>(out, tensor, first, last);
    default: return;  // a model with such outputs is refused when it is loaded
  }
}

}  // namespace serin::protocol
