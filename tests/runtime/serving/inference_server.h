// inference_server.h: for tests: a server with the doors of `serin serve` in front of the models of digits, and requests for it, as they go over the wire.
#pragma once

#include <netinet/tcp.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/wire_writer.h"
#include "runtime/serving/apis/access.h"
#include "runtime/serving/apis/dialects/all_apis.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/http_api.h"
#include "tests/runtime/net/h2_peer.h"

namespace serin::serving::test {

class InferenceServer {
 public:
  /// `large`: what messages of gRPC share.
  explicit InferenceServer(std::shared_ptr<MemoryBudget> large = nullptr)
      : repository_(std::move(*Repository::open({.roots = {{SERIN_MODELS}}, .poll = std::chrono::hours(1)}, host_, schedulers_))) {
    repository_->load();
    frontend_ = std::make_unique<Frontend>(loops_, *repository_, host_);
    access_ = std::move(*Access::open({}, registry_));
    http_api_ = std::make_unique<HttpApi>(*frontend_, *access_, all_http_apis(*frontend_));
    grpc_api_ = std::make_unique<GrpcApi>(all_grpc_methods(*frontend_));
    http_ = std::move(*net::Server::start(loops_, {.metrics = &registry_}, http_api_->at(Access::Port::kData)));
    grpc_ = std::move(*net::start_grpc_server(loops_, {.name = "grpc", .large_bodies = std::move(large), .metrics = &registry_},
                                              [this](std::string_view path) { return grpc_api_->method(path); }));
    frontend_->set_ready(true);
  }
  uint16_t http() const { return http_->port(); }
  uint16_t grpc() const { return grpc_->port(); }

 private:
  const std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry registry_;
  net::Loops loops_{1};
  Host host_{.backend = *backend_, .metrics = registry_, .boot = 1, .pool = ComputePool(1)};
  const SchedulerFactory schedulers_{host_};
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<Access> access_;
  std::unique_ptr<HttpApi> http_api_;
  std::unique_ptr<GrpcApi> grpc_api_;
  std::unique_ptr<net::Server> http_, grpc_;
};

/// Rows of 64 pixels for version 1, over HTTP/1.1.
inline std::string rest_request(std::string_view headers, std::string_view body) {
  return "POST /v2/models/digits/versions/1/infer HTTP/1.1\r\nhost: x\r\nx-serin-timeout-ms: 10000\r\n" + std::string(headers) +
         "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
inline std::string shape_of(const std::vector<float>& pixels) { return "[" + std::to_string(pixels.size() / 64) + ",64]"; }
inline std::string json_request(const std::vector<float>& pixels, std::string_view id) {
  std::string data;
  for (const float pixel : pixels) data += (data.empty() ? "" : ",") + std::to_string(pixel);
  return rest_request("content-type: application/json\r\n", R"({"id":")" + std::string(id) +
                                                                R"(","inputs":[{"name":"pixels","datatype":"FP32","shape":)" +
                                                                shape_of(pixels) + R"(,"data":[)" + data + "]}]}");
}
inline std::string_view bytes_of(const std::vector<float>& pixels) {
  return {reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof(float)};
}
/// Bytes both ways.
inline std::string bytes_request(const std::vector<float>& pixels) {
  const std::string_view bytes = bytes_of(pixels);
  const std::string json = R"({"inputs":[{"name":"pixels","datatype":"FP32","shape":)" + shape_of(pixels) +
                           R"(,"parameters":{"binary_data_size":)" + std::to_string(bytes.size()) +
                           R"(}}],"parameters":{"binary_data_output":true}})";
  return rest_request("inference-header-content-length: " + std::to_string(json.size()) + "\r\n", json + std::string(bytes));
}
/// The message, with its prefix.
inline std::string grpc_request(const std::vector<float>& pixels, std::string_view id) {
  std::string message;
  wire::write_text(message, 1, "digits");
  wire::write_text(message, 2, "1");
  wire::write_text(message, 3, id);
  wire::write_message(message, 5, [&](std::string& input) {
    wire::write_text(input, 1, "pixels");
    wire::write_text(input, 2, "FP32");
    wire::write_message(input, 3, [&](std::string& dims) {
      wire::write_varint(dims, pixels.size() / 64);
      wire::write_varint(dims, 64);
    });
  });
  wire::write_bytes(message, 7, bytes_of(pixels));
  return net::grpc_framed(message);
}
/// A client whose frames go out at once: a head and its message are two.
inline net::test::H2Peer connect_grpc(const InferenceServer& server) {
  auto peer = net::test::H2Peer::connect(server.grpc());
  const int on = 1;
  ::setsockopt(peer.socket().descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return peer;
}
inline net::test::Fields grpc_fields() {
  return net::test::request("/inference.GRPCInferenceService/ModelInfer",
                            {{"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-timeout", "10S"}}, "POST");
}

}  // namespace serin::serving::test
