// tokens.h: who may call a service: a file of bearer tokens and names of certificates, each with a name for logs and a role.
//
//   tokens:
//     - {name: grafana, role: viewer, sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
//     - {name: ci, role: operator, token: 8c1c5e0f7a2b4d6e}            # plain: only in a file that nobody else may read
//     - {name: ann, role: admin, certificate: "URI:spiffe://corp/ann"} # or DNS:..., CN:...; signed by an authority that the service trusts
//
// Tokens are random, so one round of SHA-256 is enough: there is no dictionary to go through. The file is read again when it has changed; one
// that cannot be read, or has a mistake in it, is said in the log, and the tokens of before stay.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// The token of "Authorization: Bearer TOKEN"; nothing where there is none.
std::optional<std::string_view> bearer_token(const Headers& headers);

/// In a time that does not tell how much of them is the same.
bool equal_secrets(std::string_view a, std::string_view b);

/// Thread-safe.
class Tokens {
 public:
  struct Options {
    std::string path;
    std::vector<std::string_view> roles;      ///< as the file names them; each may what the one before it may
    std::string stale_metric;                 ///< a gauge: 1 while the file cannot be used
    std::chrono::milliseconds look_every{0};  ///< how often the file is looked at, at most; 0: at every call
  };
  struct Caller {
    std::string name;
    size_t role = 0;  ///< its place in Options::roles
  };
  /// Errors name the file, and the line where it is a mistake in it. No message and no log line holds a token.
  static Result<std::unique_ptr<Tokens>> open(Options options, metrics::Registry& metrics);
  /// Takes as long whichever token matches, or none.
  std::optional<Caller> find(std::string_view token);
  /// By the first of its names that an entry has.
  std::optional<Caller> find(const net::PeerCertificate& certificate);

 private:
  struct Entry {
    std::array<unsigned char, 32> digest{};  // of its token, or
    std::string certificate;                 // a name of its certificate
    Caller caller;
  };
  explicit Tokens(Options options) : options_(std::move(options)) {}
  Result<std::vector<Entry>> read() const;
  void read_again_if_changed();  // requires mutex_

  const Options options_;
  std::shared_ptr<metrics::Gauge> stale_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_, like what follows
  FileStamp seen_;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace serin::net
