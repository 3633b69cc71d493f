#include "runtime/base/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace serin {
namespace {

const unsigned char* octets(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* octets(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

bool is_base64_digit(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/'; }

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a zero
  text.resize(static_cast<size_t>(EVP_EncodeBlock(octets(text), octets(bytes), static_cast<int>(bytes.size()))));
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  const size_t digits = static_cast<size_t>(std::ranges::find_if_not(text, is_base64_digit) - text.begin());
  const std::string_view padding = text.substr(digits);
  if (digits % 4 == 1 || (!padding.empty() && (text.size() % 4 != 0 || (padding != "=" && padding != "==")))) return std::nullopt;
  std::string padded(text.substr(0, digits));
  padded.append((4 - digits % 4) % 4, '=');
  std::string bytes(padded.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(octets(bytes), octets(padded), static_cast<int>(padded.size())) < 0) return std::nullopt;
  bytes.resize(bytes.size() - (padded.size() - digits));
  return bytes;
}

}  // namespace serin
