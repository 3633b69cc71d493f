#include "runtime/serving/apis/rest/generate_inference.h"

#include <utility>

#include "runtime/protocol/oip/generate.h"

namespace serin::serving {

Result<protocol::InferRequest> GenerateInference::decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                                         std::string& field) {
  return protocol::decode_generate_request(request.body, version.signature(), &field, frontend_.limits, std::move(memory));
}

net::Response GenerateInference::encode(const Finished& finished, net::Response blank) {
  const Version& version = finished.version;
  const OutputViews views(finished);
  const auto outputs = named_outputs(finished, views);
  blank.body = protocol::encode_generate_response({version.model(), version.version(), finished.id, outputs}, std::move(blank.body));
  blank.headers.set("Content-Type", "application/json");
  return sent(std::move(blank));
}

net::Response GenerateInference::failure(const Error& error) { return sent(HttpInference::failure(error)); }

net::Response GenerateInference::sent(net::Response response) const {
  if (!as_stream_) return response;
  response.body = protocol::as_event(response.body);
  response.headers.set("Content-Type", "text/event-stream; charset=utf-8");
  return response;
}

}  // namespace serin::serving
