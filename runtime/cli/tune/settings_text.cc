#include "runtime/cli/tune/settings_text.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

namespace serin::cli {
namespace {

/// The key that a line at the left edge begins; empty: the line goes on with the key before, or is a comment.
std::string key_of(std::string_view line) {
  if (line.empty() || line.front() == ' ' || line.front() == '#' || line.front() == '-') return "";
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return "";
  std::string key(line.substr(0, colon));
  if (key.size() >= 2 && (key.front() == '"' || key.front() == '\'') && key.back() == key.front()) key = key.substr(1, key.size() - 2);
  return key;
}

}  // namespace

Result<std::string> with_keys(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string out;
  bool left_out = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) return Error{Code::kUnsupported, "its settings are a map in braces; write one key on each line"};
    if (const std::string key = key_of(line); !key.empty())
      left_out = values.contains(key);
    else if (line.starts_with('#'))
      left_out = false;
    if (!left_out) out += line + "\n";
  }
  for (const auto& [key, value] : values)
    if (!value.empty()) out += fmt::format("{}: {}\n", key, value);
  return out;
}

}  // namespace serin::cli
