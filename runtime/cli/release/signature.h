// signature.h: Ed25519 (RFC 8032) keys in PEM, as `openssl genpkey -algorithm ed25519` writes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct evp_pkey_st;

namespace serin::cli {

class SignatureKey {
 public:
  /// A private key, which only its owner may read. kInvalidArgument: another kind of key, or none. No message contains the key.
  static Result<SignatureKey> read_private(const std::string& path);
  static Result<SignatureKey> read_public(const std::string& path);

  /// 64 bytes. Needs a private key. kInternal if OpenSSL refuses.
  Result<std::string> sign(std::string_view bytes) const;
  bool verifies(std::string_view bytes, std::string_view signature) const;
  /// SHA-256 of the 32 bytes of the public key, as hexadecimal digits: the name of the key in signatures.
  const std::string& id() const { return id_; }

 private:
  SignatureKey(std::shared_ptr<evp_pkey_st> key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}
  static Result<SignatureKey> of(std::shared_ptr<evp_pkey_st> key, const std::string& path, std::string_view kind);
  std::shared_ptr<evp_pkey_st> key_;
  std::string id_;
};

}  // namespace serin::cli
