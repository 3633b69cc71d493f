// tokens.h: authenticates callers of a service by a file of bearer tokens and certificate names, each with a name for logs and a role.
//
//   tokens:
//     - {name: grafana, role: viewer, sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
//     - {name: ci, role: operator, token: 8c1c5e0f7a2b4d6e}            # plain: only in a file that no other user may read
//     - {name: ann, role: admin, certificate: "URI:spiffe://corp/ann"} # or DNS:..., CN:...; signed by an authority that the service trusts
//
// Tokens are random, so one round of SHA-256 is enough: a dictionary attack is impossible. A changed file is read again. If it cannot be
// read or is invalid, the log says so, and the previous tokens stay in use.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/file.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::net {

/// Returns the token of "Authorization: Bearer TOKEN"; nothing if there is none.
std::optional<std::string_view> bearer_token(const Headers& headers);

/// Compares in a time that does not depend on the position of the first difference.
bool equal_secrets(std::string_view a, std::string_view b);

/// Thread-safe.
class Tokens {
 public:
  struct Options {
    std::string path;
    std::vector<std::string_view> roles;      ///< names in the file; each role includes the rights of the one before it
    std::string stale_metric;                 ///< a gauge: 1 while the file cannot be used
    std::chrono::milliseconds look_every{0};  ///< shortest interval between checks of the file; 0: check at every call
  };
  struct Caller {
    std::string name;
    size_t role = 0;  ///< index in Options::roles
  };
  /// Errors name the file, and the line of an error in it. No message and no log line contains a token.
  static Result<std::unique_ptr<Tokens>> open(Options options, metrics::Registry& metrics);
  /// Takes the same time whichever token matches, or if none does.
  std::optional<Caller> find(std::string_view token);
  /// Finds the entry of the first of its names that has one.
  std::optional<Caller> find(const net::PeerCertificate& certificate);

 private:
  struct Entry {
    std::array<unsigned char, 32> digest{};  // digest of its token, or
    std::string certificate;                 // a name of its certificate
    Caller caller;
  };
  explicit Tokens(Options options) : options_(std::move(options)) {}
  Result<std::vector<Entry>> read() const;
  void read_again_if_changed() SERIN_REQUIRES(mutex_);

  const Options options_;
  std::shared_ptr<metrics::Gauge> stale_;
  Mutex mutex_;
  std::vector<Entry> entries_ SERIN_GUARDED_BY(mutex_);
  FileStamp seen_ SERIN_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point looked_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::net
