// control_api.h: admin requests and related queries over REST: Triton's extensions of the Open Inference Protocol.
//
//   POST      /v2/repository[/R]/index, /v2/repository/models/M/load, /v2/repository/models/M/unload
//   GET, POST /v2/logging, /v2/trace/setting, /v2/models/M/trace/setting
//   GET       /v2/systemsharedmemory[/region/R]/status
//   POST      /v2/systemsharedmemory/region/R/register, /v2/systemsharedmemory[/region/R]/unregister; the same for cudasharedmemory
#pragma once

#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/path_api.h"

namespace serin::serving {

class ControlApi final : public PathApi {
 public:
  explicit ControlApi(Frontend& frontend) : frontend_(frontend) {}

  bool serves(std::string_view path) const override;
  void handle(net::Request&& request, net::Responder responder) override;

 private:
  void control_model(std::string_view path, net::Request& request, net::Responder responder);
  net::Response answer(net::Request& request);
  net::Response index(std::string_view repository, const net::Request& request);
  net::Response shared_memory(std::string_view path, net::Request& request);
  net::Response trace(std::string_view model, net::Request& request);

  Frontend& frontend_;
};

}  // namespace serin::serving
