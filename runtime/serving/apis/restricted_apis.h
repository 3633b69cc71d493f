// restricted_apis.h: groups of calls that only those may make who send a certain header, as tritonserver's --http-restricted-api and
// --grpc-restricted-protocol ask for it.
//
//   SERIN_CHECK(restricted.add("model-repository,logging:admin-key=secret", ""));      // groups:header=value; over gRPC the header has a prefix
//   if (const auto header = restricted.missing(api_group_of_http(method, path), headers)) ... 403: header `*header` is expected ...
//
// Which call belongs to which group is told by method and path alone. Paths of other protocols that this server speaks belong to the groups that do the same:
// who may not infer by one door may not by another.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::serving {

enum class ApiGroup : uint8_t {
  kHealth,
  kMetadata,
  kInference,
  kSharedMemory,
  kModelConfig,
  kModelRepository,
  kStatistics,
  kTrace,
  kLogging
};
inline constexpr std::array<std::string_view, 9> kApiGroupNames = {
    "health", "metadata", "inference", "shared-memory", "model-config", "model-repository", "statistics", "trace", "logging"};

ApiGroup api_group_of_http(std::string_view method, std::string_view path);
/// Nothing: of what the server can do in general (reflection), which nobody is kept from.
std::optional<ApiGroup> api_group_of_grpc(std::string_view path);

class RestrictedApis {
 public:
  /// What is in front of a header's name over gRPC.
  static constexpr std::string_view kGrpcPrefix = "triton-grpc-protocol-";

  /// "group,group:header=value". A group may be named once.
  Status add(std::string_view text, std::string_view prefix);
  bool empty() const { return empty_; }
  /// The header that a call of this group has to show, and does not with the right value. Nothing: it may be made.
  std::optional<std::string_view> missing(ApiGroup group, const net::Headers& headers) const;

 private:
  struct Key {
    std::string header, value;  // no header: for everybody
  };
  std::array<Key, kApiGroupNames.size()> keys_;
  bool empty_ = true;
};

}  // namespace serin::serving
