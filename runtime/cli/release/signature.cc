#include "runtime/cli/release/signature.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>

#include "runtime/base/file.h"
#include "runtime/registry/sha256.h"

namespace serin::cli {
namespace {

constexpr size_t kLargestKey = 1 << 16, kSignatureBytes = 64, kPublicBytes = 32;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

/// Without it OpenSSL asks for a passphrase on the terminal.
int no_passphrase(char* /*text*/, int /*size*/, int /*writes*/, void* /*of*/) { return -1; }

}  // namespace

Result<SignatureKey> SignatureKey::of(std::shared_ptr<evp_pkey_st> key, const std::string& path, std::string_view kind) {
  std::array<unsigned char, kPublicBytes> raw{};
  size_t size = raw.size();
  if (!key || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519 || EVP_PKEY_get_raw_public_key(key.get(), raw.data(), &size) != 1)
    return invalid(fmt::format("{}: contains no {} Ed25519 key in PEM without a passphrase", path, kind));
  const std::string digest = registry::digest_of(std::string_view(reinterpret_cast<const char*>(raw.data()), size));
  return SignatureKey(std::move(key), digest.substr(sizeof("sha256:") - 1));
}

Result<SignatureKey> SignatureKey::read_private(const std::string& path) {
  SERIN_TRY(const std::string text, read_secret_file(path, kLargestKey));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  return of({PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_passphrase, nullptr), &EVP_PKEY_free}, path, "private");
}

Result<SignatureKey> SignatureKey::read_public(const std::string& path) {
  SERIN_TRY(const std::string text, read_file(path, kLargestKey));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  return of({PEM_read_bio_PUBKEY(bio.get(), nullptr, &no_passphrase, nullptr), &EVP_PKEY_free}, path, "public");
}

Result<std::string> SignatureKey::sign(std::string_view bytes) const {
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes_of(bytes), bytes.size()) != 1)
    return Error{Code::kInternal, "OpenSSL made no signature"};
  return signature;
}

bool SignatureKey::verifies(std::string_view bytes, std::string_view signature) const {
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  return context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(bytes), bytes.size()) == 1;
}

}  // namespace serin::cli
