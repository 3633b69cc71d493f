#include "runtime/registry/remote_address.h"

#include <fmt/format.h>

#include <optional>

#include "runtime/registry/container_registry.h"
#include "runtime/registry/mlflow_login.h"
#include "runtime/registry/mlflow_registry.h"
#include "runtime/registry/registry_login.h"
#include "runtime/registry/remote_folder.h"
#include "runtime/registry/s3_bucket.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {
namespace {

constexpr std::string_view kFolder = "registry+", kContainers = "oci";

/// "https://HOST/PATH", without '/' at the end; nothing if it is no such URL.
std::optional<net::Url> plain_url(std::string_view text) {
  auto url = net::parse_url(text);
  if (!url || url->path.find('?') != std::string::npos) return std::nullopt;
  while (url->path.ends_with('/')) url->path.pop_back();
  return url;
}

/// The URL of an address that is no bucket. A container registry is below /v2.
std::optional<net::Url> url_of(std::string_view address) {
  if (address.starts_with("registry+http")) return plain_url(address.substr(kFolder.size()));
  const bool is_plain = address.starts_with("oci+http://");
  if (!is_plain && !address.starts_with("oci://")) return std::nullopt;
  auto url =
      plain_url(is_plain ? std::string(address.substr(kContainers.size() + 1)) : "https" + std::string(address.substr(kContainers.size())));
  if (url) url->path.insert(0, "/v2");
  return url;
}

}  // namespace

bool is_remote_address(std::string_view text) {
  for (const std::string_view scheme : {std::string_view("registry+http://"), std::string_view("registry+https://"),
                                        std::string_view("oci://"), std::string_view("oci+http://"), kModels})
    if (text.starts_with(scheme)) return true;
  return S3Bucket::is_address(text);
}

bool has_list_of_models(std::string_view address) { return S3Bucket::is_address(address); }

Result<std::shared_ptr<Remote>> open_remote(const std::string& address, const std::string& cache, const net::TlsClientOptions& tls) {
  auto context = net::TlsContext::for_client(tls);
  if (!context) return context.error().in("TLS");
  std::shared_ptr<const S3Bucket> bucket;
  std::optional<net::Url> url = url_of(address);
  const bool is_mlflow = address == kModels;
  if (is_mlflow) {
    SERIN_TRY(url, mlflow_url());
  }
  if (S3Bucket::is_address(address)) {
    SERIN_TRY(bucket, S3Bucket::open(address, *context));
    url = bucket->folder_url();
  }
  if (!url)
    return invalid(fmt::format(
        "'{}' is not registry+https://HOST[:PORT]/PATH, without user, '?' and '#', nor oci://HOST[/PATH], s3://BUCKET[/PREFIX] or "
        "models:/",
        address));
  constexpr size_t kDigits = 16;
  std::string mirror =
      fmt::format("{}/remote/{}", cache, digest_of(text_of(*url) + (is_mlflow ? "/models" : "/")).substr(sizeof("sha256:") - 1, kDigits));
  if (is_mlflow) return std::shared_ptr<Remote>(std::make_shared<MlflowRegistry>(*url, *std::move(context), std::move(mirror)));
  if (!address.starts_with(kContainers))
    return std::shared_ptr<Remote>(
        std::make_shared<RemoteFolder>(*std::move(url), *std::move(context), std::move(bucket), std::move(mirror)));
  auto login = std::make_shared<const RegistryLogin>(url->origin, *context);
  return std::shared_ptr<Remote>(
      std::make_shared<ContainerRegistry>(*std::move(url), *std::move(context), std::move(login), std::move(mirror)));
}

}  // namespace serin::registry
