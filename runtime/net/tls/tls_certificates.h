// tls_certificates.h: reads certificates and keys from PEM files, and reports their contents and errors. For the .cc files of net only.
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

/// Reads a file of certificates or of a key. Errors name it.
Result<std::string> read_pem(const std::string& path);
/// Parses all certificates in a text, in order; at least one. Errors name `from`.
Result<std::vector<X509Ptr>> parse_certificates(const std::string& text, const std::string& from);
/// Wipes the text after parsing.
Result<KeyPtr> parse_private_key(std::string text, const std::string& from);

/// Returns "CN=ci,O=Corp", for example.
std::string subject_of(const X509& certificate);
/// Names in the form of PeerCertificate. Names with unusual characters are left out: they could look like another name in a log or a
/// comparison.
std::vector<std::string> names_of(const X509& certificate);
std::chrono::system_clock::time_point end_of(const X509& certificate);

/// Explains why the chain in `store` is not trusted: "TLS: its certificate is for DNS:a, DNS:b, not for 'c'".
std::string describe_certificate_error(X509_STORE_CTX& store, std::string_view host, std::string_view authorities);

}  // namespace serin::net
