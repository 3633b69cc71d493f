// restricted_apis.h: groups of calls that require a certain header, as in tritonserver's --http-restricted-api and
// --grpc-restricted-protocol.
//
//   SERIN_CHECK(restricted.add("model-repository,logging:admin-key=secret", ""));      // groups:header=value; over gRPC with a prefix
//   if (const auto header = restricted.missing(api_group_of_http(method, path), headers)) ... 403: header `*header` is expected ...
//
// The group of a call follows from method and path alone. Paths of other protocols belong to the groups with the same function, so that a
// client that may not infer through one API may not infer through another.
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
/// Nothing: a general query (reflection), which every client may make.
std::optional<ApiGroup> api_group_of_grpc(std::string_view path);

class RestrictedApis {
 public:
  /// Prefix of a header's name over gRPC.
  static constexpr std::string_view kGrpcPrefix = "triton-grpc-protocol-";

  /// Format: "group,group:header=value". A group may be named once.
  Status add(std::string_view text, std::string_view prefix);
  bool empty() const { return empty_; }
  /// The header that a call of this group lacks, or has with a wrong value. Nothing: the call is allowed.
  std::optional<std::string_view> missing(ApiGroup group, const net::Headers& headers) const;

 private:
  struct Key {
    std::string header, value;  // no header: every client
  };
  std::array<Key, kApiGroupNames.size()> keys_;
  bool empty_ = true;
};

}  // namespace serin::serving
