#include "runtime/serving/apis/restricted_apis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/net/message/text.h"
#include "runtime/net/tokens.h"

namespace serin::serving {
namespace {

/// Of what is behind /v2/models/NAME, or /v2/models/NAME/versions/N.
ApiGroup group_of_model_call(std::string_view method, std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? "" : path.substr(slash + 1);  // a model may be called `ready`
  if (path.ends_with("/trace/setting")) return ApiGroup::kTrace;
  if (method != "GET" && method != "HEAD") return ApiGroup::kInference;
  if (last == "ready") return ApiGroup::kHealth;
  if (last == "config") return ApiGroup::kModelConfig;
  if (last == "stats") return ApiGroup::kStatistics;
  return ApiGroup::kMetadata;
}

}  // namespace

ApiGroup api_group_of_http(std::string_view method, std::string_view path) {
  if (path == "/v2/models/stats") return ApiGroup::kStatistics;
  if (path.starts_with("/v2/models/")) return group_of_model_call(method, path.substr(std::string_view("/v2/models/").size()));
  if (path.starts_with("/v2/health/") || path == "/") return ApiGroup::kHealth;
  if (path.starts_with("/v2/repository/")) return ApiGroup::kModelRepository;
  if (path.starts_with("/v2/systemsharedmemory/") || path.starts_with("/v2/cudasharedmemory/")) return ApiGroup::kSharedMemory;
  if (path.starts_with("/v2/trace/")) return ApiGroup::kTrace;
  if (path == "/v2/logging") return ApiGroup::kLogging;
  return method == "GET" || method == "HEAD" || method == "OPTIONS" ? ApiGroup::kMetadata : ApiGroup::kInference;
}

std::optional<ApiGroup> api_group_of_grpc(std::string_view path) {
  using enum ApiGroup;
  if (path.starts_with("/grpc.health.")) return kHealth;
  if (path.starts_with("/grpc.reflection.")) return std::nullopt;
  const std::string_view method = path.substr(path.rfind('/') + 1);
  if (path.starts_with("/tensorflow.serving.")) {
    if (method.starts_with("HandleReloadConfig")) return kModelRepository;
    return method.starts_with("Get") ? kMetadata : kInference;
  }
  if (method == "ServerLive" || method == "ServerReady" || method == "ModelReady") return kHealth;
  if (method == "ServerMetadata" || method == "ModelMetadata") return kMetadata;
  if (method == "ModelConfig") return kModelConfig;
  if (method == "ModelStatistics") return kStatistics;
  if (method == "TraceSetting") return kTrace;
  if (method == "LogSettings") return kLogging;
  if (method.starts_with("Repository")) return kModelRepository;
  return method.find("SharedMemory") != std::string_view::npos ? kSharedMemory : kInference;
}

Status RestrictedApis::add(std::string_view text, std::string_view prefix) {
  const size_t colon = text.find(':'), equals = text.find('=', colon == std::string_view::npos ? colon : colon + 1);
  if (equals == std::string_view::npos || colon + 1 == equals || equals + 1 == text.size())
    return invalid(fmt::format("'{}' is no groups:header=value", text.substr(0, equals)));  // the value is a secret
  const std::string_view own = text.substr(colon + 1, equals - colon - 1);
  if (!net::text::all(own, net::text::kToken)) return invalid(fmt::format("'{}' is no name of a header", own));
  const std::string header = fmt::format("{}{}", prefix, own);
  std::string_view names = text.substr(0, colon);
  while (true) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    const auto found = std::ranges::find(kApiGroupNames, name);
    if (found == kApiGroupNames.end()) return invalid(fmt::format("'{}' is none of: {}", name, fmt::join(kApiGroupNames, ", ")));
    Key& key = keys_[static_cast<size_t>(found - kApiGroupNames.begin())];
    if (!key.header.empty()) return invalid(fmt::format("{} is named twice", name));
    key = {header, std::string(text.substr(equals + 1))};
    empty_ = false;
    if (comma == names.size()) return {};
    names.remove_prefix(comma + 1);
  }
}

std::optional<std::string_view> RestrictedApis::missing(ApiGroup group, const net::Headers& headers) const {
  const Key& key = keys_[static_cast<size_t>(group)];
  if (key.header.empty() || net::equal_secrets(headers.get(key.header), key.value)) return std::nullopt;
  return key.header;
}

}  // namespace serin::serving
