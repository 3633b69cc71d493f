// mlflow_registry.h: models of MLflow's model registry, by models:/NAME/VERSION, models:/NAME@ALIAS and models:/NAME/latest.
//
// MLflow tells no digests. So a version is downloaded when it is first asked for, with exactly the sizes that MLflow lists. Its digests are taken
// then, and from there on the mirror is a registry as any other. A version of MLflow does not change: it is downloaded once.
#pragma once

#include <memory>
#include <string>

#include "runtime/registry/mlflow_server.h"
#include "runtime/registry/remote.h"

namespace serin::registry {

inline constexpr std::string_view kModels = "models:/";

/// "models:/digits/3", "models:/digits@production", "models:/digits/latest", "models:/digits/Production". kInvalidArgument: it is none.
Result<Reference> parse_model_uri(std::string_view uri);

class MlflowRegistry : public Remote {
 public:
  MlflowRegistry(const net::Url& url, std::shared_ptr<const net::TlsContext> tls, std::string mirror);

  /// Downloads the version. Errors also: those of read_mlmodel(); kUnsupported: its artifacts are where they are not read.
  Status refresh(const Reference& reference) override;
  /// Compares its files with their digests, and downloads the version again if one is not the same.
  Status fetch(const std::string& model, const Version& version) const override;

 private:
  std::string blob_name(const std::string& /*model*/, std::string_view digest) const override { return std::string(digest); }
  bool is_there(const OciLayout& layout, const MlflowVersion& version) const;
  Status take(const OciLayout& layout, const std::string& model, const MlflowVersion& version) const;
  Result<Version> download(const OciLayout& layout, const MlflowVersion& version) const;

  const MlflowServer server_;
};

}  // namespace serin::registry
