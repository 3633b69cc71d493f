// http_inference.h: one inference between the socket and the batcher, the same for every protocol over HTTP: a door says how a body is read and how outputs are written.
//
//   class MyInference final : public HttpInference {
//     using HttpInference::HttpInference;
//     Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory, std::string& field) override;
//     net::Response encode(const Finished& finished, net::Response blank) override;
//   };
//   HttpInference::start(std::make_shared<MyInference>(std::move(responder)), frontend, frontend.catalogue().find(model, version), version, std::move(request));
//
// Deadlines, shadow requests, counters and the headers that all answers have are looked after here. Lives on the io thread of the connection; large bodies are
// decoded and encoded beside it (net::aside), one of both at a time.
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

  /// `version`: or why there is none, `asked` being the number that the client named.
  static void start(const std::shared_ptr<HttpInference>& call, Frontend& frontend, Result<std::shared_ptr<Version>> version,
                    std::string_view asked, net::Request&& request);

 protected:
  /// What that takes, in bytes of JSON.
  virtual size_t work_to_decode(const net::Request& request) const;
  /// `field` gets what is to blame for an error. Called once. `memory` may be used for the result.
  virtual Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                                std::string& field) = 0;
  /// The outputs are there. `blank` may be used for the answer.
  virtual net::Response encode(const Finished& finished, net::Response blank) = 0;
  /// Before it was started.
  virtual net::Response refusal(const Error& error, std::string_view field);
  /// Once it was, and was taken.
  virtual net::Response failure(const Error& error) { return refusal(error, {}); }
  virtual TfApi api() const { return TfApi::kInfer; }

  /// Of one that is used again.
  void set_responder(net::Responder responder) { responder_ = std::move(responder); }

 private:
  struct Arrival;
  struct Reading;
  struct Writing;

  static void answer(const std::shared_ptr<HttpInference>& call, const Finished& finished);
  net::Response response_to(const Finished& finished, net::Response blank);
  /// Before it was started.
  void refuse(Frontend& frontend, std::string_view version, const Error& error, std::string_view field = {});

  net::Responder responder_;
  std::string field_;  // to blame for what is wrong
};

}  // namespace serin::serving
