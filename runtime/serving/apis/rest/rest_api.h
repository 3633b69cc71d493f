// rest_api.h: the Open Inference Protocol v2 over REST: routes, headers, and a request's way between the socket and the batcher.
//
//   GET  /v2, /v2/health/live, /v2/health/ready, /v2/models, /v2/models/stats, /v2/models/M[/versions/V][/ready|/config|/stats]
//   POST /v2/models/M[/versions/V]/infer, /generate, /generate_stream
//
// A server is live until one of its versions has lost its devices (Catalogue::live). Only another process can use them again;
// x-serin-reason says so.
//
// Every answer has x-serin-batch, and answers of a model have x-serin-version. The body of an error is {"error": text} with x-serin-code
// and, if one field is invalid, x-serin-field.
#pragma once

#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/http_inference.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class OipInference final : public HttpInference {
 public:
  OipInference();
  void begin(net::Responder responder, const Frontend& frontend);
  /// For Recycler.
  void clear();

 private:
  size_t work_to_decode(const net::Request& request) const override;
  Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                        std::string& field) override;
  net::Response encode(const Finished& finished, net::Response blank) override;

  const protocol::RequestLimits* limits_ = nullptr;
};

class RestApi final : public PathApi {
 public:
  explicit RestApi(Frontend& frontend);

  /// Every path: an unknown one is answered 404.
  bool serves(std::string_view) const override { return true; }
  void handle(net::Request&& request, net::Responder responder) override;

 private:
  struct Route;
  std::shared_ptr<HttpInference> begin(const Route& route, net::Responder responder);
  net::Response answer_about(const Route& route, const net::Request& request);
  net::Response answer(std::string_view path, const net::Request& request);
  net::Response metadata(const Route& route);
  net::Response readiness(const Route& route);
  net::Response statistics(const Route& route);
  net::Response config(const Route& route);
  net::Response server_metadata();

  Frontend& frontend_;
  std::vector<Recycler<OipInference>> inferences_;  // one for each io thread
};

}  // namespace serin::serving
