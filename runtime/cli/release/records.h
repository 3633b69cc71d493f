// records.h: what became of each release of a service: one line each, which no one can change unseen.
//
// A line is an envelope of DSSE (github.com/secure-systems-lab/dsse) around a statement of in-toto (in-toto.io/Statement/v1). Its subject is the
// model, by the digest of its names and contents. Its predicate has everything that led to the outcome, and `previous`: the SHA-256 of the line
// before it. With a key each line is signed.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/release/signature.h"

namespace serin::cli {

inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1", kPredicateType = "https://serin.dev/release/v1",
                                  kPayloadType = "application/vnd.in-toto+json";

struct ReleaseRecord {
  std::string line, digest;  ///< as it is in the file, without its end; its SHA-256: "sha256:..."
  boost::json::object statement;
  std::vector<std::string> keys;  ///< IDs of the keys that it claims to be signed with

  const boost::json::object& predicate() const;
  /// A text of the predicate; empty: there is none.
  std::string text(std::string_view key) const;
};

class ReleaseRecords {
 public:
  /// `folder`: of the service, in the registry.
  explicit ReleaseRecords(std::string folder) : path_(std::move(folder) + "/records.jsonl") {}

  /// Oldest first. kCorrupt names the first line that does not follow the line before it.
  Result<std::vector<ReleaseRecord>> read() const;
  /// Adds a statement unless the last line has its ID. `previous` is filled in. Not for two processes at once.
  Result<ReleaseRecord> append(boost::json::object predicate, boost::json::array subject, const SignatureKey* key);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whether the line is signed by this key.
bool is_signed_by(const ReleaseRecord& record, const SignatureKey& key);

/// The folder of a service's releases: journal, records, lock.
std::string release_folder(const std::string& registry, const std::string& service);
/// Services that have one, sorted.
Result<std::vector<std::string>> released_services(const std::string& registry);

}  // namespace serin::cli
