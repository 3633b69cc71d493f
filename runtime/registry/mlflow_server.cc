#include "runtime/registry/mlflow_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "runtime/base/json_at.h"
#include "runtime/base/number.h"
#include "runtime/net/message/text.h"
#include "runtime/net/target.h"
#include "runtime/registry/mlflow_login.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/s3_bucket.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

namespace json = boost::json;

constexpr std::string_view kApi = "api/2.0/mlflow", kProxy = "api/2.0/mlflow-artifacts/artifacts", kProxied = "mlflow-artifacts:";
constexpr size_t kMostFiles = 10'000, kDeepest = 16;

std::string escaped_artifact(std::string_view path) {
  std::string text;
  net::append_escaped(path, "/", text);
  return text;
}

/// MLflow writes 64 bits as a number or as a text.
std::optional<uint64_t> whole_number(const json::value& value, std::string_view pointer) {
  const json::value* const found = json_at::find(value, pointer);
  if (!found) return std::nullopt;
  if (found->is_string()) return parse_number<uint64_t>(std::string_view(found->get_string()));
  boost::system::error_code error;
  const auto number = found->to_number<uint64_t>(error);
  return error ? std::nullopt : std::optional(number);
}

const json::array& list_at(const json::value& value, std::string_view pointer) {
  static const json::array none;
  const json::value* const found = json_at::find(value, pointer);
  return found && found->is_array() ? found->get_array() : none;
}

std::string time_of_ms(uint64_t milliseconds) {
  constexpr uint64_t kLatest = 253'402'300'799'000;  // the year 9999
  const std::chrono::sys_seconds at(std::chrono::seconds(std::min(milliseconds, kLatest) / 1000));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(at));
}

/// "mlflow-artifacts:/PATH" or "mlflow-artifacts://HOST/PATH". Nothing: the path is no safe one.
std::optional<std::string> proxied_path(std::string_view uri) {
  uri.remove_prefix(kProxied.size());
  if (uri.starts_with("//")) {
    uri.remove_prefix(2);
    uri.remove_prefix(std::min(uri.find('/'), uri.size()));
  }
  while (uri.starts_with('/')) uri.remove_prefix(1);
  while (uri.ends_with('/')) uri.remove_suffix(1);
  return is_safe_path(uri) ? std::optional<std::string>(uri) : std::nullopt;
}

}  // namespace

std::string ArtifactFolder::place(const std::string& path) const { return root + escaped_artifact(path); }

MlflowServer::MlflowServer(const net::Url& url, std::shared_ptr<const net::TlsContext> tls)
    : files_(std::make_shared<const HttpFiles>(url, tls, std::make_shared<const MlflowLogin>())), tls_(std::move(tls)) {}

Result<json::value> MlflowServer::ask(const std::string& path) const {
  SERIN_TRY(const auto read, files_->read(path, kMostText));
  boost::system::error_code error;
  json::value value = json::parse(read->text, error);
  if (error || !value.is_object())
    return Error{Code::kCorrupt, files_->url(path) + ": is no answer of MLflow; is MLFLOW_TRACKING_URI right?"};
  return value;
}

Result<uint64_t> MlflowServer::number_of(const Reference& reference) const {
  if (const auto number = registry::number_of(reference.version)) return *number;
  const std::string path = fmt::format("{}/registered-models/get?name={}", kApi, net::escaped(reference.model));
  SERIN_TRY(const json::value answer, ask(path));
  std::vector<std::string> names;
  for (const json::value& alias : list_at(answer, "/registered_model/aliases")) {
    names.push_back(quotable(json_at::text(alias, "/alias")));
    const auto number = whole_number(alias, "/version");
    if (number && json_at::text(alias, "/alias") == reference.version) return *number;
  }
  uint64_t latest = 0;  // of all stages, or of the one that is named
  for (const json::value& version : list_at(answer, "/registered_model/latest_versions")) {
    const bool is_meant =
        reference.version == "latest" || net::equal_ignoring_case(json_at::text(version, "/current_stage"), reference.version);
    if (is_meant) latest = std::max(latest, whole_number(version, "/version").value_or(0));
  }
  if (latest > 0) return latest;
  return Error{Code::kNotFound, fmt::format("{}: no version has this alias or stage; aliases are: {}", reference.str(),
                                            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
}

Result<MlflowVersion> MlflowServer::version(const std::string& model, uint64_t number) const {
  const std::string query = fmt::format("name={}&version={}", net::escaped(model), number);
  const std::string path = fmt::format("{}/model-versions/get?{}", kApi, query);
  SERIN_TRY(const json::value answer, ask(path));
  const json::value* const found = json_at::find(answer, "/model_version");
  if (!found || whole_number(*found, "/version") != number)
    return Error{Code::kCorrupt, files_->url(path) + ": does not answer the version that it is asked for"};
  if (const std::string status = json_at::text(*found, "/status"); !status.empty() && status != "READY")
    return Error{Code::kFailedPrecondition, fmt::format("{}:{}: its status in MLflow is {}", model, number, quotable(status))};
  MlflowVersion version{.number = number,
                        .created = time_of_ms(whole_number(*found, "/creation_timestamp").value_or(0)),
                        .by = quotable(json_at::text(*found, "/user_id")),
                        .run = quotable(json_at::text(*found, "/run_id")),
                        .source = quotable(json_at::text(*found, "/source")),
                        .artifacts = {}};
  SERIN_TRY(const json::value where, ask(fmt::format("{}/model-versions/get-download-uri?{}", kApi, query)));
  version.artifacts = json_at::text(where, "/artifact_uri");
  return version;
}

Result<ArtifactFolder> MlflowServer::artifacts(const std::string& uri) const {
  if (uri.starts_with(kProxied)) {
    const auto path = proxied_path(uri);
    if (!path) return Error{Code::kCorrupt, fmt::format("{}: the artifacts are at '{}', which is no path", files_->url(""), quotable(uri))};
    SERIN_TRY(std::vector<ListedFile> files, list(*path));
    return ArtifactFolder{files_, fmt::format("{}/{}/", kProxy, escaped_artifact(*path)), std::move(files)};
  }
  if (S3Bucket::is_address(uri)) {
    SERIN_TRY(const auto bucket, S3Bucket::open(uri, tls_));
    SERIN_TRY(std::vector<ListedFile> files, S3Bucket::files(bucket, tls_));
    return ArtifactFolder{std::make_shared<const HttpFiles>(bucket->folder_url(), tls_, bucket), "", std::move(files)};
  }
  const bool is_file = uri.starts_with("file:") || uri.find(':') == std::string::npos;
  return Error{Code::kUnsupported,
               fmt::format("{}: the artifacts are at '{}', which Serin does not read; {}", files_->url(""), quotable(uri),
                           is_file ? "start MLflow's server with --serve-artifacts, so that it answers its files"
                                   : "those of s3:// and of a server with --serve-artifacts are read")};
}

/// Folder by folder: the server lists one at a time.
Result<std::vector<ListedFile>> MlflowServer::list(const std::string& root) const {
  std::vector<ListedFile> found;
  std::vector<std::string> left{""};  // folders below the root
  size_t entries = 0;
  while (!left.empty()) {
    const std::string folder = std::move(left.back());
    left.pop_back();
    const std::string whole = folder.empty() ? root : fmt::format("{}/{}", root, folder),
                      path = fmt::format("{}?path={}", kProxy, net::escaped(whole));
    SERIN_TRY(const json::value answer, ask(path));
    for (const json::value& entry : list_at(answer, "/files")) {
      std::string name = json_at::text(entry, "/path");
      name.erase(0, name.rfind('/') + 1);  // some servers answer the whole path
      std::string place = folder.empty() ? name : fmt::format("{}/{}", folder, name);
      if (!is_safe_path(name) || !is_safe_path(place))
        return Error{Code::kCorrupt, fmt::format("{}: lists '{}', which is no name of a file", files_->url(path), quotable(name))};
      const bool is_folder = json_at::is_true(entry, "/is_dir");
      const auto bytes = whole_number(entry, "/file_size");
      if (++entries > kMostFiles || static_cast<size_t>(std::ranges::count(place, '/')) > kDeepest)
        return Error{Code::kTooLarge,
                     fmt::format("{}: has more than {} files, or folders deeper than {}", files_->url(path), kMostFiles, kDeepest)};
      if (is_folder) {
        left.push_back(std::move(place));
        continue;
      }
      if (!bytes) return Error{Code::kCorrupt, fmt::format("{}: tells no size of '{}'", files_->url(path), quotable(name))};
      found.push_back({std::move(place), *bytes});
    }
  }
  return found;
}

}  // namespace serin::registry
