#include "runtime/serving/apis/http_api.h"

#include <algorithm>

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
  const bool empty_segment = request.path.find("//") != std::string::npos;
  if (empty_segment && !api_of(request.path).takes_empty_segments())
    return refuse(net::json_error(404, "Not Found: the path has an empty segment" + path_meant(frontend_, request)));
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();  // OVMS clients write it
  if (const auto why_not = access_.refuse_http(request, port)) return refuse(refusal_response(*why_not));
  api_of(request.path).handle(std::move(request), std::move(responder));
}

PathApi& HttpApi::api_of(std::string_view path) const {
  return **std::ranges::find_if(apis_, [path](const auto& api) { return api->serves(path); });
}

}  // namespace serin::serving
