// registry_source.h: places that are versions of a registry (runtime/registry).
//
//   registry://models                       the version of each model that is tagged `production`
//   registry://models/digits                the same for one model
//   registry://models/digits:canary         a tag, a number, or `latest`; @sha256:... is a digest
//   registry+https://HOST/PATH/digits:canary   the same of a registry that a web server offers; the model must be named
//   oci://HOST/PATH/digits:canary              the same of a container registry
//   s3://BUCKET/PREFIX/digits:canary           the same of a registry in a bucket; without a model: of each
//   models:/digits/3, models:/digits@canary    a version of the model registry of MLflow (MLFLOW_TRACKING_URI), by number or alias
#pragma once

#include <string>

#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/registry/peers.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::cli {

struct RegistryOptions {
  std::string cache;            ///< folder; empty: serin/models in $XDG_CACHE_HOME or in ~/.cache
  std::string ca;               ///< authorities for https; empty: those that the system trusts
  registry::PeerOptions peers;  ///< without names: none
};

/// Replaces such places by folders of a cache, into which their versions are copied, and follows the tags while the server runs. A tag is
/// also a label. The settings of a model are those of its highest version.
/// Errors: those of the registry and of Peers::open(). kInvalidArgument: other places are named, too; there is no folder for the cache; there are
/// peers, but no place in a remote registry. `metrics` must outlive the source.
Status use_registries(serving::ModelSource& source, const RegistryOptions& options, metrics::Registry& metrics);

}  // namespace serin::cli
