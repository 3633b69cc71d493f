// container_registry.h: models as artifacts of a container registry: the repository HOST/PATH/MODEL has the versions of a model, under tags.
//
// Source: OCI Distribution Specification 1.1, "Pull". An artifact is a version that Serin has made, or one of files with their names, such as
// `oras push` makes. The number of the latter is its tag, its annotation org.opencontainers.image.version, or else one made of its digest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/registry/remote.h"

namespace serin::registry {

class ContainerRegistry : public Remote {
 public:
  /// `base`: https://HOST/v2/PATH.
  ContainerRegistry(net::Url base, std::shared_ptr<const net::TlsContext> tls, std::shared_ptr<const Access> login, std::string mirror)
      : Remote(std::move(base), std::move(tls), std::move(login), std::move(mirror)) {}

  /// Of one tag or digest; without a version: of all tags.
  Status refresh(const Reference& reference) override;

 private:
  std::string blob_name(const std::string& model, std::string_view digest) const override;
  Status refresh_tags(const std::string& model);

  std::map<std::string, TextFile> manifests_;  // as last read, by reference
};

}  // namespace serin::registry
