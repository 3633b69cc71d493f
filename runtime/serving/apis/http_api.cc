#include "runtime/serving/apis/http_api.h"

#include "runtime/serving/apis/nearest_path.h"

namespace serin::serving {

net::Handler HttpApi::at(Access::Port port) {
  return [this, port](net::Request&& request, net::Responder responder) { handle(std::move(request), std::move(responder), port); };
}

void HttpApi::handle(net::Request&& request, net::Responder responder, Access::Port port) {
  const auto refuse = [&](net::Response response) {
    response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
    responder.send(std::move(response));
  };
  // An empty segment names nothing, and must not be read in two ways by who authorises and who answers. TensorFlow Serving has a word of its own for it.
  if (request.path.find("//") != std::string::npos && !tf_serving_.serves(request.path))
    return refuse(net::json_error(404, "Not Found: the path has an empty segment" + path_meant(frontend_, request)));
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();  // OVMS clients write it
  if (const auto why_not = access_.refuse_http(request, port)) return refuse(refusal_response(*why_not));
  if (PaddleApi::serves(request.path)) return paddle_.handle(std::move(request), std::move(responder));
  if (tf_serving_.serves(request.path)) return tf_serving_.handle(std::move(request), std::move(responder));
  if (ovms_.serves(request.path)) return ovms_.handle(request, std::move(responder));
  if (ControlApi::serves(request.path)) return control_.handle(std::move(request), std::move(responder));
  open_inference_.handle(std::move(request), std::move(responder));
}

}  // namespace serin::serving
