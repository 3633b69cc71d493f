#include "runtime/base/json_quote.h"

#include <algorithm>

#include "kernels/utf8.h"

namespace serin {

void append_json_quoted(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    const char c = text.front();
    if (length == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out.append("\\u00").append({kHex[c >> 4], kHex[c & 15]});
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out.push_back('"');
}

}  // namespace serin
