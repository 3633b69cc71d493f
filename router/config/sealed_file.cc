#include "router/config/sealed_file.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <memory>

#include "runtime/base/file.h"

namespace serin::router {
namespace {

constexpr std::string_view kMagic = "serin sealed 1\n";
constexpr size_t kSalt = 32, kNonce = 12, kTag = 16, kLargestSealed = size_t{2} << 30, kMostRecords = 10'000'000;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* raw(std::string& text, size_t at) { return reinterpret_cast<unsigned char*>(text.data() + at); }

/// What is authenticated besides the record.
std::string place_of(std::string_view purpose, uint64_t index, uint64_t count) {
  return fmt::format("{}\n{} of {}", purpose, index, count);
}

/// nonce, encrypted text, tag. Empty: OpenSSL failed.
std::string seal(const SealingKey& key, std::string_view place, std::string_view text) {
  std::string sealed(kNonce + text.size() + kTag, '\0');
  const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  const bool done = context && RAND_bytes(raw(sealed, 0), kNonce) == 1 &&
                    EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), raw(sealed, 0)) == 1 &&
                    EVP_EncryptUpdate(context.get(), nullptr, &size, raw(place), static_cast<int>(place.size())) == 1 &&
                    EVP_EncryptUpdate(context.get(), raw(sealed, kNonce), &size, raw(text), static_cast<int>(text.size())) == 1 &&
                    EVP_EncryptFinal_ex(context.get(), raw(sealed, kNonce + text.size()), &size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag, raw(sealed, kNonce + text.size())) == 1;
  return done ? sealed : std::string();
}

bool open(const SealingKey& key, std::string_view place, std::string_view sealed, std::string& text) {
  if (sealed.size() < kNonce + kTag) return false;
  const std::string_view inner = sealed.substr(kNonce, sealed.size() - kNonce - kTag);
  std::string tag(sealed.substr(sealed.size() - kTag));
  text.assign(inner.size(), '\0');
  const Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  return context && EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), raw(sealed)) == 1 &&
         EVP_DecryptUpdate(context.get(), nullptr, &size, raw(place), static_cast<int>(place.size())) == 1 &&
         EVP_DecryptUpdate(context.get(), raw(text, 0), &size, raw(inner), static_cast<int>(inner.size())) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) == 1 &&
         EVP_DecryptFinal_ex(context.get(), raw(text, inner.size()), &size) == 1;
}

/// Each file has a key of its own: one key would wear out (2^32 random nonces), and records of two files could be mixed.
bool derive(const SealingKey& key, std::string_view salt, SealingKey& derived) {
  unsigned size = 0;
  return HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(salt), salt.size(), derived.data(), &size) != nullptr &&
         size == derived.size();
}

void put(std::string& out, uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

bool take(std::string_view& from, uint64_t& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}

}  // namespace

Result<SealingKey> read_sealing_key(const std::string& path) {
  SERIN_TRY(std::string text, read_secret_file(path, 4096));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  constexpr size_t kBase64 = 44;  // of 32 bytes
  std::array<unsigned char, 33> bytes{};
  if (text.size() != kBase64 || EVP_DecodeBlock(bytes.data(), raw(text), static_cast<int>(kBase64)) != 33 || !text.ends_with('=') ||
      text.ends_with("=="))
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: must be the base64 of 32 random bytes, as `openssl rand -base64 32` prints them", path)};
  SealingKey key{};
  std::memcpy(key.data(), bytes.data(), key.size());
  return key;
}

Status write_sealed(const std::string& path, const SealingKey& key, std::string_view purpose, const std::vector<std::string>& records) {
  std::string out(kMagic), salt(kSalt, '\0');
  SealingKey own{};
  Error failed{Code::kInternal, fmt::format("{}: cannot be encrypted", path)};
  if (RAND_bytes(raw(salt, 0), kSalt) != 1 || !derive(key, salt, own)) return failed;
  out += salt;
  put(out, records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string sealed = seal(own, place_of(purpose, i, records.size()), records[i]);
    if (sealed.empty()) return failed;
    put(out, sealed.size());
    out += sealed;
  }
  // A file without records is authenticated as well.
  const std::string end = seal(own, place_of(purpose, records.size(), records.size()), "");
  if (end.empty()) return failed;
  return write_file_atomically(path, out + end, 0600);
}

Result<std::vector<std::string>> read_sealed(const std::string& path, const SealingKey& key, std::string_view purpose) {
  SERIN_TRY(const std::string whole, read_file(path, kLargestSealed));
  Error damaged{Code::kCorrupt, fmt::format("{}: damaged, or written with another key or for another service", path)};
  if (!whole.starts_with(kMagic)) return damaged;
  std::string_view left = std::string_view(whole).substr(kMagic.size());
  SealingKey own{};
  if (left.size() < kSalt || !derive(key, left.substr(0, kSalt), own)) return damaged;
  left.remove_prefix(kSalt);
  uint64_t count = 0;
  if (!take(left, count) || count > kMostRecords) return damaged;
  std::vector<std::string> records;
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (!take(left, size) || size > left.size() || !open(own, place_of(purpose, i, count), left.substr(0, static_cast<size_t>(size)), text))
      return damaged;
    left.remove_prefix(static_cast<size_t>(size));
    records.push_back(text);
  }
  if (!open(own, place_of(purpose, count, count), left, text)) return damaged;
  return records;
}

}  // namespace serin::router
