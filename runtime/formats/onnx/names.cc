#include "runtime/formats/onnx/names.h"

namespace serin::formats::onnx {

std::string printable(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kLongestName)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.append(name.size() > kLongestName ? "..." : "");
}

std::string quote(std::string_view name) { return "'" + printable(name) + "'"; }

std::string_view without_alias(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

}  // namespace serin::formats::onnx
