// http_inference.h: one inference between the socket and the batcher, shared by all protocols over HTTP. Each API supplies its codec.
//
//   class MyInference final : public HttpInference {
//     using HttpInference::HttpInference;
//     Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory,
//                                           std::string& field) override;
//     net::Response encode(const Finished& finished, net::Response blank) override;
//   };
//   HttpInference::start(std::make_shared<MyInference>(std::move(responder)), frontend, frontend.catalogue().find(model, version), version,
//                        std::move(request));
//
// This class handles deadlines, shadow requests, counters and the headers of all answers. It runs on the io thread of the connection. Large
// bodies are decoded and encoded on helper threads (net::Loop::aside()), one at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/net/server.h"
#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/inference.h"

namespace serin::serving {

class HttpInference {
 public:
  explicit HttpInference(net::Responder responder) : responder_(std::move(responder)) {}
  virtual ~HttpInference() = default;

  /// `version`: or the error why there is none; `asked`: the version number in the request.
  static void start(const std::shared_ptr<HttpInference>& call, Frontend& frontend, Result<std::shared_ptr<Version>> version,
                    std::string_view asked, net::Request&& request);

 protected:
  /// Cost of decoding, in bytes of JSON.
  virtual size_t work_to_decode(const net::Request& request) const;
  /// `field` receives the invalid field. Called once. `memory` may be reused for the result.
  virtual Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                                std::string& field) = 0;
  /// The outputs exist. `blank` may be reused for the answer.
  virtual net::Response encode(const Finished& finished, net::Response blank) = 0;
  /// For an error before the inference started.
  virtual net::Response refusal(const Error& error, std::string_view field);
  /// For an error after it was accepted.
  virtual net::Response failure(const Error& error) { return refusal(error, {}); }
  virtual TfApi api() const { return TfApi::kInfer; }
  /// The version whose signature the decoded request is for.
  virtual std::shared_ptr<Version> meant(const std::shared_ptr<Version>& found) const { return found; }

  /// For a reused object.
  void set_responder(net::Responder responder) { responder_ = std::move(responder); }

 private:
  struct Arrival;
  struct Reading;
  struct Writing;

  static void answer(const std::shared_ptr<HttpInference>& call, const Finished& finished);
  net::Response response_to(const Finished& finished, net::Response blank);
  /// For an error before the inference started.
  void refuse(Frontend& frontend, std::string_view version, const Error& error, std::string_view field = {});

  net::Responder responder_;
  std::string field_;  // the invalid field
};

}  // namespace serin::serving
