// remote_address.h: which remote registry an address names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/registry/remote.h"

namespace serin::registry {

/// Whether a text begins as such an address.
bool is_remote_address(std::string_view text);
/// Whether models at the address can be listed: in a bucket.
bool has_list_of_models(std::string_view address);
/// "registry+https://HOST/PATH", "registry+http://...", "s3://BUCKET[/PREFIX]", "oci://HOST[/PATH]", "oci+http://..." or "models:/" (mlflow_registry.h).
/// The mirror is a folder in `cache`. Errors: kInvalidArgument; those of `tls`, of S3Bucket::open() and of mlflow_url().
Result<std::shared_ptr<Remote>> open_remote(const std::string& address, const std::string& cache, const net::TlsClientOptions& tls);

}  // namespace serin::registry
