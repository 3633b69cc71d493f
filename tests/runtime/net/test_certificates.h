// test_certificates.h: an authority of the test's own, and what it signs, in a folder that goes with it.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace serin::net::test {

struct Names {
  std::string common_name = "test",
              alternative = "DNS:localhost,IP:127.0.0.1";  ///< alternative: as OpenSSL's configuration has it; empty: none
  long from_seconds = -3600, until_seconds = 3600;         ///< from now
};

struct Files {
  std::string certificate, key;
};

class Authority {
 public:
  explicit Authority(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("serin-tls-" + std::to_string(::getpid()) + "-" + name)),
        key_(EVP_EC_gen("P-256")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    certificate_ = sign(key_.get(), {.common_name = name, .alternative = ""}, /*authority=*/true);
    write_certificate(file(), certificate_.get());
  }
  ~Authority() { std::filesystem::remove_all(folder_); }

  std::string file() const { return path("ca.crt"); }
  std::string path(const std::string& name) const { return folder_ / name; }
  /// Writes <name>.crt and <name>.key, also over those that are there.
  Files issue(const std::string& name, const Names& names = {}) const {
    const Key key(EVP_EC_gen("P-256"));
    const Files files{path(name + ".crt"), path(name + ".key")};
    write_certificate(files.certificate, sign(key.get(), names, /*authority=*/false).get());
    const File out(std::fopen(files.key.c_str(), "w"));
    PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return files;
  }
  /// A key that asks for a password.
  std::string encrypted_key() const {
    const Key key(EVP_EC_gen("P-256"));
    const File out(std::fopen(path("encrypted.key").c_str(), "w"));
    PEM_write_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), "secret", 6, nullptr, nullptr);
    return path("encrypted.key");
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(FILE* file) const { std::fclose(file); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;
  using File = std::unique_ptr<FILE, Free>;

  static void write_certificate(const std::string& path, X509* certificate) {
    const File out(std::fopen(path.c_str(), "w"));
    PEM_write_X509(out.get(), certificate);
  }

  Certificate sign(EVP_PKEY* key, const Names& names, bool authority) const {
    Certificate made(X509_new());
    X509_set_version(made.get(), X509_VERSION_3);
    static long serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), names.from_seconds);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), names.until_seconds);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(names.common_name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(authority ? made.get() : certificate_.get()));
    X509_set_pubkey(made.get(), key);
    extend(*made, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (!names.alternative.empty()) extend(*made, NID_subject_alt_name, names.alternative);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }
  static void extend(X509& certificate, int what, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    X509_add_ext(&certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  const std::filesystem::path folder_;
  const Key key_;
  Certificate certificate_;
};

}  // namespace serin::net::test
