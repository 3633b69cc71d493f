// tls_certificates.h: certificates and keys as they lie in PEM files, what they say, and what is wrong with them. For the .cc files of net only.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::net {

struct X509Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using X509Ptr = std::unique_ptr<X509, X509Free>;
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, KeyFree>;

/// A file of certificates or of a key. Errors name it.
Result<std::string> read_pem(const std::string& path);
/// All in a text, in order; at least one. Errors name where it is from.
Result<std::vector<X509Ptr>> parse_certificates(const std::string& text, const std::string& from);
/// Wipes the text.
Result<KeyPtr> parse_private_key(std::string text, const std::string& from);

/// "CN=ci,O=Corp", or what there is.
std::string subject_of(const X509& certificate);
/// As PeerCertificate has them. Names with characters that no name has are left out: they would be somebody else's in a log or a comparison.
std::vector<std::string> names_of(const X509& certificate);
std::chrono::system_clock::time_point end_of(const X509& certificate);

/// Why the chain in `store` is not believed: "TLS: its certificate is for DNS:a, DNS:b, not for 'c'".
std::string describe_certificate_error(X509_STORE_CTX& store, std::string_view host, std::string_view authorities);

}  // namespace serin::net
