// remote.h: a registry behind a URL, read only: its files as any web server or bucket's public address serves them.
//
//   SERIN_TRY(const auto remote, Remote::open("registry+https://models.corp/registry", "cache", {}));
//   SERIN_CHECK(remote->refresh("digits"));                                           // what versions and tags there are
//   SERIN_TRY(const Version version, Registry(remote->mirror()).find({"digits", "production"}));
//   SERIN_CHECK(remote->fetch("digits", version));                                    // their files
//   SERIN_TRY(const Pulled pulled, Registry(remote->mirror()).pull({"digits", version.digest}, "models"));
//
// The mirror is a registry in a folder; it lacks the files of versions that were not fetched. A server of files has no list of models, so their
// names are given.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/model_version.h"

namespace serin::registry {

/// For one thread at a time. Processes share a mirror.
class Remote {
 public:
  /// Whether a text begins as such an address.
  static bool is_address(std::string_view text);
  /// "registry+https://HOST/PATH" or "registry+http://...". The mirror is a folder in `cache`. Errors: kInvalidArgument; those of `tls`.
  static Result<std::shared_ptr<Remote>> open(const std::string& address, const std::string& cache, const net::TlsClientOptions& tls);

  const std::string& mirror() const { return mirror_; }
  /// Reads the index if it has changed, and the manifests that are new. Errors: as HttpFiles; kNotFound: no registry, or no such model;
  /// kCorrupt: no OCI index, or a manifest with other contents than its digest says.
  Status refresh(const std::string& model);
  /// Downloads the files of a version of the mirror that are not there yet. One process of a machine does; others wait for it.
  Status fetch(const std::string& model, const Version& version) const;

 private:
  Remote(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::string mirror)
      : files_(std::move(base), std::move(tls)), mirror_(std::move(mirror)) {}

  HttpFiles files_;
  const std::string mirror_;
  std::map<std::string, TextFile> indices_;  // as last read, by model
};

}  // namespace serin::registry
