#include "runtime/serving/http_api.h"

namespace serin::serving {

void HttpApi::handle(net::Request request, net::Responder responder) {
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();  // OVMS clients write it
  open_inference_.handle(std::move(request), std::move(responder));
}

}  // namespace serin::serving
