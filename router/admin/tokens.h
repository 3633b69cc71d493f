// tokens.h: who may use the admin API: a file of bearer tokens and names of certificates, each with a name for the audit log and a role.
//
//   tokens:
//     - {name: grafana, role: viewer, sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
//     - {name: ci, role: operator, token: 8c1c5e0f7a2b4d6e}            # plain: only in a file that nobody else may read
//     - {name: ann, role: admin, certificate: "URI:spiffe://corp/ann"} # or DNS:..., CN:...; signed by admin.tls.client_ca
//
// Tokens are random, so one round of SHA-256 is enough: there is no dictionary to go through. The file is read again when it has changed; one
// that cannot be read, or has a mistake in it, is said in the log, and the tokens of before stay.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/net/tls.h"

namespace serin::router {

/// Each may what the one before it may.
enum class Role : uint8_t {
  kViewer,    ///< reads
  kOperator,  ///< starts rollouts and steers them, while evidence goes on judging
  kAdmin,     ///< promotes without evidence
};
std::string_view role_name(Role role);

struct Caller {
  std::string name;
  Role role = Role::kViewer;
};

/// Thread-safe.
class Tokens {
 public:
  /// Errors name the file, and the line where it is a mistake in it. No message and no log line holds a token.
  static Result<std::unique_ptr<Tokens>> open(std::string path, metrics::Registry& metrics);
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
  explicit Tokens(std::string path) : path_(std::move(path)) {}
  static Result<std::vector<Entry>> read(const std::string& path);
  void read_again_if_changed();

  const std::string path_;
  std::shared_ptr<metrics::Gauge> stale_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_, like what follows
  FileStamp seen_;
};

}  // namespace serin::router
