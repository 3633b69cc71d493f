#include "runtime/registry/xml_texts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "kernels/utf8.h"

namespace serin::registry {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};

constexpr size_t kLongest = sizeof("&#x10FFFF;");

/// What stands between '&' and ';'. False: it is no reference.
bool append_reference(std::string_view name, std::string& out) {
  if (!name.starts_with('#')) {
    const auto known = std::ranges::find(kNamed, name, &std::pair<std::string_view, char>::first);
    if (known == kNamed.end()) return false;
    out += known->second;
    return true;
  }
  const bool hexadecimal = name.starts_with("#x");
  const char *first = name.data() + (hexadecimal ? 2 : 1), *last = name.data() + name.size();
  uint32_t point = 0;
  const auto [end, failure] = std::from_chars(first, last, point, hexadecimal ? 16 : 10);
  if (failure != std::errc() || end != last || first == last || point > 0x10FFFF) return false;
  encode_utf8(point, out);
  return true;
}

std::string without_references(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t mark = std::min(text.find('&'), text.size());
    out.append(text.substr(0, mark));
    const size_t length = text.substr(mark, kLongest).find(';');
    if (length != std::string_view::npos && append_reference(text.substr(mark + 1, length - 1), out)) {
      text.remove_prefix(mark + length + 1);
    } else {
      out.append(text.substr(mark, 1));
      text.remove_prefix(std::min(text.size(), mark + 1));
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> xml_texts(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name), close = "</" + std::string(name) + ">";
  std::vector<std::string> texts;
  size_t next = 0;
  for (size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, next)) {
    next = at + open.size();
    if (next < xml.size() && std::string_view("> \t\r\n").find(xml[next]) == std::string_view::npos) continue;  // a longer name
    const size_t end = xml.find('>', next);
    if (end == std::string_view::npos) break;
    next = std::min(xml.find('<', end), xml.size());
    if (xml.substr(next).starts_with(close)) texts.push_back(without_references(xml.substr(end + 1, next - end - 1)));
  }
  return texts;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const std::vector<std::string> texts = xml_texts(xml, name);
  return texts.empty() ? std::string() : texts.front();
}

}  // namespace serin::registry
