#include "router/config/signing_keys.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <string_view>

#include "runtime/base/file.h"

namespace serin::router {
namespace {

constexpr std::string_view kKeyPrefix = "whsec_";
constexpr size_t kLargestSecret = 4096, kShortestKey = 24, kLongestKey = 64, kMostKeys = 4;  // bytes as Standard Webhooks has them

/// Empty where it is no base64.
std::string from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > 2 * kLongestKey) return "";
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return "";
  bytes.resize(static_cast<size_t>(size) - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  return bytes;
}

}  // namespace

Result<std::vector<std::string>> read_signing_keys(const std::string& path) {
  SERIN_TRY(const std::string text, read_secret_file(path, kLargestSecret));
  std::vector<std::string> keys;
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view given = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (given.empty()) continue;
    std::string key = given.starts_with(kKeyPrefix) ? from_base64(given.substr(kKeyPrefix.size())) : "";
    if (key.size() < kShortestKey || key.size() > kLongestKey || keys.size() == kMostKeys)
      return Error{Code::kInvalidArgument, fmt::format("{}:{}: must be whsec_ and the base64 of {} to {} random bytes, on at most {} lines",
                                                       path, line, kShortestKey, kLongestKey, kMostKeys)};
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return Error{Code::kInvalidArgument, fmt::format("{}: contains no key", path)};
  return keys;
}

}  // namespace serin::router
