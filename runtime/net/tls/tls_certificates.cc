// tls_certificates.cc: OpenSSL's words for what is wrong are true, but do not say with which certificate; these do.

#include "runtime/net/tls/tls_certificates.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "runtime/base/file.h"

namespace serin::net {
namespace {

constexpr size_t kLargestFile = size_t{4} << 20;  // Debian's bundle of all authorities has 0.2 MB

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioFree>;

BioPtr memory(const std::string& text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

Error bad_file(const std::string& path, std::string_view what) { return {Code::kInvalidArgument, fmt::format("{}: {}", path, what)}; }

std::string_view as_text(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)), static_cast<size_t>(ASN1_STRING_length(string))};
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7F; });
}

std::string address_text(const ASN1_STRING* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  const bool known = ASN1_STRING_length(bytes) == 4 || ASN1_STRING_length(bytes) == 16;
  if (known) ::inet_ntop(family, ASN1_STRING_get0_data(bytes), text.data(), text.size());
  return text.data();
}

/// Of the extension subjectAltName. IP addresses name servers, not callers.
std::vector<std::string> alternative_names(const X509& certificate, bool addresses) {
  std::vector<std::string> uris, names, ips;
  auto* list = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list, i);
    if (name->type == GEN_IPADD && addresses) ips.push_back("IP:" + address_text(name->d.iPAddress));
    if (name->type != GEN_URI && name->type != GEN_DNS) continue;
    const std::string_view text = as_text(name->d.ia5);
    if (is_name(text)) (name->type == GEN_URI ? uris : names).push_back(fmt::format("{}:{}", name->type == GEN_URI ? "URI" : "DNS", text));
  }
  GENERAL_NAMES_free(list);
  uris.insert(uris.end(), names.begin(), names.end());
  uris.insert(uris.end(), ips.begin(), ips.end());
  return uris;
}

std::string print_name(const X509_NAME* name) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "a certificate without a name";
}

std::string print_time(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts) : "an unreadable time";
}

std::string wrong_name(const X509& certificate, std::string_view host) {
  const auto names = alternative_names(certificate, /*addresses=*/true);
  if (names.empty())
    return fmt::format("has no subject alternative name, so it is not for '{}' (its subject, {}, does not count)", host,
                       subject_of(certificate));
  return fmt::format("is for {}, not for '{}'", fmt::join(names, ", "), host);
}

}  // namespace

Result<std::string> read_pem(const std::string& path) { return read_file(path, kLargestFile); }

Result<std::vector<X509Ptr>> parse_certificates(const std::string& text, const std::string& from) {
  const BioPtr bio = memory(text);
  std::vector<X509Ptr> certificates;
  ERR_clear_error();
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) certificates.emplace_back(certificate);
  const unsigned long failure = ERR_peek_last_error();
  ERR_clear_error();
  const bool at_end = ERR_GET_REASON(failure) == PEM_R_NO_START_LINE;
  if (certificates.empty() && at_end) return bad_file(from, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  if (!at_end)
    return bad_file(from,
                    fmt::format("certificate {} in it cannot be read: {}", certificates.size() + 1, ERR_reason_error_string(failure)));
  return certificates;
}

Result<KeyPtr> parse_private_key(std::string text, const std::string& from) {
  const BioPtr bio = memory(text);
  bool asked = false;
  const auto no_password = [](char*, int, int, void* was_asked) {
    *static_cast<bool*>(was_asked) = true;
    return -1;
  };
  ERR_clear_error();
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, &asked));
  ERR_clear_error();
  OPENSSL_cleanse(text.data(), text.size());
  if (asked)
    return bad_file(from,
                    "the key is encrypted, and a server cannot ask for its password: store it unencrypted, readable by its owner only");
  if (!key) return bad_file(from, "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)");
  return key;
}

std::string subject_of(const X509& certificate) { return print_name(X509_get_subject_name(&certificate)); }

std::vector<std::string> names_of(const X509& certificate) {
  std::vector<std::string> names = alternative_names(certificate, /*addresses=*/false);
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return names;
  const std::string_view common_name = as_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (is_name(common_name)) names.push_back(fmt::format("CN:{}", common_name));
  return names;
}

std::chrono::system_clock::time_point end_of(const X509& certificate) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string describe_certificate_error(X509_STORE_CTX& store, std::string_view host, std::string_view authorities) {
  const int error = X509_STORE_CTX_get_error(&store);
  const X509* certificate = X509_STORE_CTX_get_current_cert(&store);
  if (certificate == nullptr) return fmt::format("TLS: its certificate: {}", X509_verify_cert_error_string(error));
  const bool own = X509_STORE_CTX_get_error_depth(&store) == 0;
  const std::string which = own ? fmt::format("its certificate ({})", subject_of(*certificate))
                                : fmt::format("{}, which signed its certificate,", subject_of(*certificate));
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return fmt::format("TLS: {} expired on {}", which, print_time(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("TLS: {} is not valid before {}", which, print_time(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return fmt::format("TLS: {} {}", which, wrong_name(*certificate, host));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return fmt::format("TLS: {} is signed by {}, an unknown authority: it is not in {}", which,
                         print_name(X509_get_issuer_name(certificate)), authorities);
    default: return fmt::format("TLS: {}: {}", which, X509_verify_cert_error_string(error));
  }
}

}  // namespace serin::net
