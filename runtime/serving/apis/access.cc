// access.cc: two lists of what is not an order, and the look at who asks.

#include "runtime/serving/apis/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/serving/settings/dialect.h"

namespace serin::serving {
namespace {

constexpr std::array<std::string_view, 3> kRoles = {"read", "infer", "admin"};
constexpr auto kLookEvery = std::chrono::milliseconds(200);  // at the file: not for each of many thousand requests a second

template <size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

}  // namespace

Right right_of_http(std::string_view method, std::string_view path) {
  if (path == "/v2/health/live" || path == "/v2/health/ready" || path == "/") return Right::kNone;  // the last is KServe V1's probe
  if (method == "OPTIONS") return Right::kNone;  // what a browser asks before it shows a token; it tells nothing of models
  if (method == "GET" || method == "HEAD") return Right::kRead;
  if (path.starts_with("/v2/models/")) return path.ends_with("/trace/setting") ? Right::kAdmin : Right::kInfer;
  constexpr std::array<std::string_view, 5> kOrders = {"repository", "systemsharedmemory", "cudasharedmemory", "trace", "logging"};
  if (path.starts_with("/v2/repository/") && path.ends_with("/index")) return Right::kRead;
  if (path.starts_with("/v2/") && contains(kOrders, path.substr(4, path.find('/', 4) - 4))) return Right::kAdmin;
  return path == kReloadPath ? Right::kAdmin : Right::kInfer;  // TF Serving's, KServe's and Paddle's paths take no orders
}

Right right_of_grpc(std::string_view path) {
  constexpr std::array<std::string_view, 6> kInference = {
      "/inference.GRPCInferenceService/ModelInfer",    "/inference.GRPCInferenceService/ModelStreamInfer",
      "/tensorflow.serving.PredictionService/Predict", "/tensorflow.serving.PredictionService/Classify",
      "/tensorflow.serving.PredictionService/Regress", "/tensorflow.serving.PredictionService/MultiInference"};
  constexpr std::array<std::string_view, 10> kQuestions = {"/inference.GRPCInferenceService/ModelReady",
                                                           "/inference.GRPCInferenceService/ServerMetadata",
                                                           "/inference.GRPCInferenceService/ModelMetadata",
                                                           "/inference.GRPCInferenceService/ModelConfig",
                                                           "/inference.GRPCInferenceService/ModelStatistics",
                                                           "/inference.GRPCInferenceService/RepositoryIndex",
                                                           "/tensorflow.serving.PredictionService/GetModelMetadata",
                                                           "/tensorflow.serving.ModelService/GetModelStatus",
                                                           "/inference.GRPCInferenceService/SystemSharedMemoryStatus",
                                                           "/inference.GRPCInferenceService/CudaSharedMemoryStatus"};
  if (path.starts_with("/grpc.health.v1.Health/") || path == "/inference.GRPCInferenceService/ServerLive" ||
      path == "/inference.GRPCInferenceService/ServerReady")
    return Right::kNone;
  if (contains(kInference, path)) return Right::kInfer;
  if (contains(kQuestions, path) || path.starts_with("/grpc.reflection.")) return Right::kRead;
  return Right::kAdmin;
}

Result<std::unique_ptr<Access>> Access::open(Options options, metrics::Registry& metrics) {
  auto access = std::unique_ptr<Access>(new Access(std::move(options)));
  const auto counter = [&](const char* reason) {
    return metrics.counter("serin_refused_callers_total", "Calls refused because of the caller.", {{"reason", reason}});
  };
  access->unauthenticated_ = counter("unauthenticated");
  access->forbidden_ = counter("forbidden");
  if (access->options_.tokens.empty()) return access;
  SERIN_TRY(access->tokens_, net::Tokens::open({.path = access->options_.tokens,
                                                .roles = {kRoles.begin(), kRoles.end()},
                                                .stale_metric = "serin_tokens_stale",
                                                .look_every = kLookEvery},
                                               metrics));
  return access;
}

std::optional<Access::Refusal> Access::refuse(Right right, Port port, const net::Headers& headers,
                                              const net::PeerCertificate* certificate) {
  if (right == Right::kNone || (!tokens_ && right != Right::kAdmin)) return std::nullopt;
  auto refusal = look(right, port, headers, certificate);
  if (refusal) (refusal->status == net::GrpcStatus::kUnauthenticated ? unauthenticated_ : forbidden_)->add();
  return refusal;
}

std::optional<Access::Refusal> Access::refuse_http(const net::Request& request, Port port) {
  if (!options_.http.empty()) {
    if (const auto header = options_.http.missing(api_group_of_http(request.method, request.path), request.headers)) {
      forbidden_->add();
      return Refusal{net::GrpcStatus::kPermissionDenied, fmt::format("This API is restricted, expecting header '{}'", *header)};
    }
  }
  return refuse(right_of_http(request.method, request.path), port_of(request.path, port), request.headers, request.certificate.get());
}

std::optional<Access::Refusal> Access::refuse_grpc(std::string_view path, bool known, const net::Headers& headers,
                                                   const net::PeerCertificate* certificate) {
  const auto group = known && !options_.grpc.empty() ? api_group_of_grpc(path) : std::nullopt;
  if (const auto header = group ? options_.grpc.missing(*group, headers) : std::nullopt) {
    forbidden_->add();
    return Refusal{net::GrpcStatus::kUnavailable, fmt::format("This protocol is restricted, expecting header '{}'", *header)};
  }
  return refuse(known ? right_of_grpc(path) : Right::kRead, port_of(path, Port::kData), headers,
                certificate);  // kRead: to hear that there is none
}

std::optional<Access::Refusal> Access::look(Right right, Port port, const net::Headers& headers, const net::PeerCertificate* certificate) {
  if (tokens_) {
    const auto token = net::bearer_token(headers);
    const auto caller = token ? tokens_->find(*token) : certificate ? tokens_->find(*certificate) : std::nullopt;
    if (!caller) {
      const std::string_view what = token ? "this token is not known here" : "a token is needed: Authorization: Bearer TOKEN";
      return Refusal{net::GrpcStatus::kUnauthenticated, std::string(what), token.has_value()};
    }
    const size_t needed = static_cast<size_t>(right) - 1;
    if (caller->role < needed)
      return Refusal{net::GrpcStatus::kPermissionDenied,
                     fmt::format("this call needs the role {}; '{}' has {}", kRoles[needed], caller->name, kRoles[caller->role])};
  }
  if (right == Right::kAdmin && !tokens_ && headers.has("origin"))  // which a page cannot leave out of a POST
    return Refusal{net::GrpcStatus::kPermissionDenied, "orders are not taken from pages of a browser where no tokens are asked for"};
  if (right == Right::kAdmin && port == Port::kData && !options_.admin_on_data_port)
    return Refusal{net::GrpcStatus::kPermissionDenied,
                   "orders to the server are not taken at this port: start it with --admin-port N, or with --admin-on-data-port"};
  return std::nullopt;
}

net::Response refusal_response(const Access::Refusal& refusal) {
  net::Response response = net::json_error(net::http_status_of(refusal.status), refusal.message);
  if (refusal.status == net::GrpcStatus::kUnauthenticated)
    response.headers.set("WWW-Authenticate",
                         refusal.bad_token ? R"(Bearer realm="serin", error="invalid_token")" : R"(Bearer realm="serin")");
  return response;
}

}  // namespace serin::serving
