// tfserving_api.h: TensorFlow Serving's REST API, and KServe's V1 protocol, which has the same paths.
//
//   POST /v1/models/M[/versions/V|/labels/L]:predict|:classify|:regress
//   GET  /v1/models/M[/versions/V|/labels/L][/metadata]
//
// Fixed words may have any case. Any other path below /v1/models is 400, as in TensorFlow Serving. runtime/protocol has the codecs of the
// bodies.
//
// In KServe's dialect, GET / reports that the server is alive, GET /v1/models lists names, and GET /v1/models/M is the model's readiness.
// Predictions are in "predictions" for every form of request.
#pragma once

#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class TfServingApi final : public PathApi {
 public:
  explicit TfServingApi(Frontend& frontend) : frontend_(frontend) {}

  bool serves(std::string_view path) const override;
  bool takes_empty_segments() const override { return true; }
  void handle(net::Request&& request, net::Responder responder) override;

 private:
  struct Route;
  net::Response answer(const net::Request& request);
  net::Response kserve_readiness(const Route& route);

  Frontend& frontend_;
};

}  // namespace serin::serving
