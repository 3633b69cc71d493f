// mlflow_server.h: the model registry of a tracking server of MLflow: which version a name means, and where its files are.
//
//   const MlflowServer server(url, tls);
//   SERIN_TRY(const uint64_t number, server.number_of({"digits", "production"}));
//   SERIN_TRY(const MlflowVersion version, server.version("digits", number));
//   SERIN_TRY(const ArtifactFolder folder, server.artifacts(version.artifacts));
//
// Source: MLflow's REST API 2.0, `registered-models/get`, `model-versions/get`, `model-versions/get-download-uri`, and
// `mlflow-artifacts/artifacts` of a server that serves artifacts.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/http_files.h"
#include "runtime/registry/mlflow_model.h"
#include "runtime/registry/model_version.h"

namespace serin::registry {

struct MlflowVersion {
  uint64_t number = 0;
  std::string created, by, run;  ///< time (RFC 3339, UTC), person, ID of the run that logged it
  std::string source;            ///< as it was registered
  std::string artifacts;         ///< URI of the folder of its files
};

/// The folder of a logged model, on the tracking server or in a bucket. Neither tells digests of its files.
struct ArtifactFolder {
  std::shared_ptr<const HttpFiles> server;
  std::string root;               ///< before the path of each file at the server
  std::vector<ListedFile> files;  ///< all of them, also those in folders of it

  std::string place(const std::string& path) const;  ///< at `server`
};

/// For one thread at a time.
class MlflowServer {
 public:
  MlflowServer(const net::Url& url, std::shared_ptr<const net::TlsContext> tls);

  /// The version that a number, an alias, `latest`, or a stage ("Production") names. kNotFound names the aliases that there are.
  Result<uint64_t> number_of(const Reference& reference) const;
  /// kFailedPrecondition: it is not ready.
  Result<MlflowVersion> version(const std::string& model, uint64_t number) const;
  /// Of `mlflow-artifacts:` and s3://. kUnsupported: any other place, such as a file of the server's own.
  Result<ArtifactFolder> artifacts(const std::string& uri) const;

 private:
  Result<boost::json::value> ask(const std::string& path) const;
  Result<std::vector<ListedFile>> list(const std::string& root) const;

  const std::shared_ptr<const HttpFiles> files_;
  const std::shared_ptr<const net::TlsContext> tls_;
};

}  // namespace serin::registry
