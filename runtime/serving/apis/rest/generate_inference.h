// generate_inference.h: one call of Triton's generate extension, which differs from other inferences only in its codec
// (protocol/generate.h).
#pragma once

#include "runtime/serving/apis/http_inference.h"

namespace serin::serving {

class GenerateInference final : public HttpInference {
 public:
  /// `as_stream`: the result is the only event of a stream, because no model here has several answers. A failure is an event too, unless
  /// the inference was refused at its start.
  GenerateInference(net::Responder responder, const Frontend& frontend, bool as_stream)
      : HttpInference(std::move(responder)), frontend_(frontend), as_stream_(as_stream) {}

 private:
  Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                        std::string& field) override;
  net::Response encode(const Finished& finished, net::Response blank) override;
  net::Response failure(const Error& error) override;
  net::Response sent(net::Response response) const;

  const Frontend& frontend_;
  const bool as_stream_;
};

}  // namespace serin::serving
