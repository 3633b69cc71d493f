#include "runtime/cli/token_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/file.h"

namespace serin::cli {
namespace {

constexpr size_t kLargestToken = 4096;

}  // namespace

Result<std::string> token_in(std::string text, const std::string& name) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (std::ranges::any_of(text, [](char c) { return c <= ' ' || c >= 0x7F; }))
    return invalid(fmt::format("{}: contains no token: it must be one line of visible ASCII characters", name));
  return text;
}

Result<std::string> read_token_file(const std::string& file) {
  if (file.empty()) return std::string();
  auto text = read_file(file, kLargestToken);
  if (!text) return invalid(fmt::format("--token-file {}", text.error().message));
  return token_in(*std::move(text), file);
}

}  // namespace serin::cli
