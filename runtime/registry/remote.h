// remote.h: a registry elsewhere: behind a URL, as any web server serves its files, in a bucket of S3, as repositories of a container registry.
// Or the model registry of MLflow.
//
//   SERIN_TRY(const auto remote, open_remote("registry+https://models.corp/registry", "cache", {}));
//   SERIN_CHECK(remote->refresh({"digits", "production"}));                           // what it is now
//   SERIN_TRY(const Version version, Registry(remote->mirror()).find({"digits", "production"}));
//   SERIN_CHECK(remote->fetch("digits", version));                                    // its files
//   SERIN_TRY(const Pulled pulled, Registry(remote->mirror()).pull({"digits", version.digest}, "models"));
//
// The mirror is a registry in a folder; it lacks the files of versions that were not fetched.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/model_version.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/peers.h"

namespace serin::registry {

struct Pushed {
  Version version;
  bool existed = false;  ///< the registry had it, with its reports and tag; nothing has changed
};

/// For one thread at a time. Processes share a mirror.
class Remote {
 public:
  virtual ~Remote() = default;
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  const std::string& mirror() const { return mirror_; }
  /// Reads what has changed of a model; without a version: of all its versions. Errors: as HttpFiles; kNotFound: no registry, or no such model;
  /// kCorrupt: no OCI index, or a manifest with other contents than its digest says.
  virtual Status refresh(const Reference& reference) = 0;
  /// Refreshes every model that there is, and answers their names. Errors: kInvalidArgument: no bucket; kNotFound: there is no model; as refresh().
  virtual Result<std::vector<std::string>> refresh_all();
  /// As refresh_all() has found them last.
  const std::vector<std::string>& models() const { return models_; }
  /// Downloads the files of a version of the mirror that are not there yet. One process of a machine does; others wait for it.
  virtual Status fetch(const std::string& model, const Version& version) const;
  /// From now on, files come from them, too, and are offered to them.
  void use(std::shared_ptr<Peers> peers) { peers_ = std::move(peers); }
  /// Uploads a version of the registry in `folder`, with its reports, and the tag if the reference is one. Files come first, then the record, then
  /// the index, on condition that no other writer has replaced it meanwhile; else all is looked at again.
  /// kInvalidArgument: no bucket. kAlreadyExists: the number has other contents there, or the contents another number. kFailedPrecondition: retired,
  /// here or there. kUnsupported: a server without conditional requests. kConflict: others have changed the index again and again.
  virtual Result<Pushed> push(const std::string& folder, const Reference& reference, const std::string& by);

 protected:
  Remote(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const Access> access, std::string mirror)
      : files_(std::move(base), std::move(tls), std::move(access)), mirror_(std::move(mirror)) {}
  virtual std::string blob_name(const std::string& model, std::string_view digest) const = 0;
  /// A manifest or its details, unless the mirror has them.
  Status take_text(const OciLayout& layout, const std::string& model, const Descriptor& wanted) const;

  const HttpFiles files_;
  const std::string mirror_;
  std::vector<std::string> models_;

 private:
  std::shared_ptr<Peers> peers_;  // null: there are none
};

}  // namespace serin::registry
