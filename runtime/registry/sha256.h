// sha256.h: digests of files and texts, written as OCI does: "sha256:" and 64 hexadecimal digits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace serin::registry {

/// Of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  std::string take();  ///< and begins again

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string digest_of(std::string_view bytes);
/// Whether the text is such a digest.
bool is_digest(std::string_view text);

struct Measured {
  std::string digest;
  uint64_t bytes = 0;
};
/// Reads the whole file. Errors: kNotFound, kPermissionDenied, kIo; kInvalidArgument for anything that is no regular file.
Result<Measured> measure_file(const std::string& path);
/// The same while it copies the file to `to`, which must not exist; the copy is on the disk when it returns.
Result<Measured> copy_file(const std::string& from, const std::string& to);

}  // namespace serin::registry
