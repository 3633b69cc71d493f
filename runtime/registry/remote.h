// remote.h: a registry behind a URL, as any web server serves its files, or in a bucket of S3, where models can also be listed and pushed.
//
//   SERIN_TRY(const auto remote, Remote::open("registry+https://models.corp/registry", "cache", {}));
//   SERIN_CHECK(remote->refresh("digits"));                                           // what versions and tags there are
//   SERIN_TRY(const Version version, Registry(remote->mirror()).find({"digits", "production"}));
//   SERIN_CHECK(remote->fetch("digits", version));                                    // their files
//   SERIN_TRY(const Pulled pulled, Registry(remote->mirror()).pull({"digits", version.digest}, "models"));
//
// The mirror is a registry in a folder; it lacks the files of versions that were not fetched. A web server has no list of models, so their
// names are given there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/model_version.h"
#include "runtime/registry/s3_bucket.h"

namespace serin::registry {

class Shipment;

struct Pushed {
  Version version;
  bool existed = false;  ///< the registry had it, with its reports and tag; nothing has changed
};

/// For one thread at a time. Processes share a mirror.
class Remote {
 public:
  /// Whether a text begins as such an address.
  static bool is_address(std::string_view text);
  /// "registry+https://HOST/PATH", "registry+http://..." or "s3://BUCKET[/PREFIX]". The mirror is a folder in `cache`. Errors:
  /// kInvalidArgument; those of `tls` and of S3Bucket::open().
  static Result<std::shared_ptr<Remote>> open(const std::string& address, const std::string& cache, const net::TlsClientOptions& tls);

  const std::string& mirror() const { return mirror_; }
  /// Reads the index if it has changed, and the manifests that are new. Errors: as HttpFiles; kNotFound: no registry, or no such model;
  /// kCorrupt: no OCI index, or a manifest with other contents than its digest says.
  Status refresh(const std::string& model);
  /// Refreshes every model that there is, and answers their names. Errors: kInvalidArgument: a web server has no list; kNotFound: there is no
  /// model; as refresh().
  Result<std::vector<std::string>> refresh_all();
  /// As refresh_all() has found them last.
  const std::vector<std::string>& models() const { return models_; }
  /// Downloads the files of a version of the mirror that are not there yet. One process of a machine does; others wait for it.
  Status fetch(const std::string& model, const Version& version) const;
  /// Uploads a version of the registry in `folder`, with its reports, and the tag if the reference is one. Files come first, then the record, then
  /// the index, on condition that no other writer has replaced it meanwhile; else all is looked at again.
  /// kInvalidArgument: no bucket. kAlreadyExists: the number has other contents there, or the contents another number. kFailedPrecondition: retired,
  /// here or there. kUnsupported: a server without conditional requests. kConflict: others have changed the index again and again.
  Result<Pushed> push(const std::string& folder, const Reference& reference, const std::string& by);

 private:
  Remote(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const S3Bucket> bucket, std::string mirror)
      : files_(std::move(base), tls, bucket), tls_(std::move(tls)), bucket_(std::move(bucket)), mirror_(std::move(mirror)) {}
  Result<Pushed> push_once(const Shipment& shipment, const std::string& by);

  HttpFiles files_;
  const std::shared_ptr<const net::TlsContext> tls_;
  const std::shared_ptr<const S3Bucket> bucket_;  // null: a web server
  const std::string mirror_;
  std::vector<std::string> models_;
  std::map<std::string, TextFile> indices_;  // as last read, by model
};

}  // namespace serin::registry
