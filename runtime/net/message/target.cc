// target.cc: decodes percent-encoding exactly once, before any code reads the path, so that no other spelling can bypass a check.

#include "runtime/net/target.h"

#include <algorithm>

#include "runtime/base/utf8.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

bool has_dot_segment(std::string_view path) {
  if (path.find("/.") == std::string_view::npos) return false;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, slash - begin);
    if (segment == "." || segment == "..") return true;
    begin = slash + 1;
  }
  return false;
}

Refusal refusal(std::string message) { return {400, "target", std::move(message)}; }

}  // namespace

std::optional<Refusal> decode_target(std::string_view target, std::string& path, std::string& query) {
  const size_t mark = target.find('?');
  const std::string_view raw = target.substr(0, mark);
  query.assign(mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1));
  if (std::ranges::all_of(raw, [](char c) { return c != '%' && c > 0; })) {  // nearly always
    path = raw;
    if (has_dot_segment(path)) return refusal("the path holds a '.' or '..' segment");
    return std::nullopt;
  }
  path.clear();
  path.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '%') {
      path.push_back(raw[i]);
      continue;
    }
    if (i + 2 >= raw.size() || !text::all(raw.substr(i + 1, 2), text::kHexDigit)) {
      return refusal("the path has a '%' without two hexadecimal digits after it");
    }
    const unsigned byte = text::hex_value(raw[i + 1]) * 16 + text::hex_value(raw[i + 2]);
    if (byte < 0x20 || byte == 0x7F || byte == '/') return refusal("the path has an escaped slash or control character");
    path.push_back(static_cast<char>(byte));
    i += 2;
  }
  if (has_dot_segment(path)) return refusal("the path holds a '.' or '..' segment");
  if (!is_utf8(path)) return refusal("the path is not UTF-8");
  return std::nullopt;
}

void append_escaped(std::string_view text, std::string_view kept, std::string& out) {
  constexpr std::string_view kUnreserved = "-._~", kHex = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (alphanumeric || kUnreserved.find(c) != std::string_view::npos || kept.find(c) != std::string_view::npos)
      out += c;
    else
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(text, {}, out);
  return out;
}

}  // namespace serin::net
