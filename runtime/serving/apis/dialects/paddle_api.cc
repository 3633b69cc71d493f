#include "runtime/serving/apis/dialects/paddle_api.h"

#include <fmt/format.h>

#include "runtime/protocol/paddle/paddle.h"
#include "runtime/serving/apis/http_answers.h"
#include "runtime/serving/apis/http_inference.h"

namespace serin::serving {
namespace {

using protocol::PaddleForm;

constexpr std::string_view kService = "/GeneralModelService/", kPrediction = "/prediction";

class PaddleInference final : public HttpInference {
 public:
  PaddleInference(net::Responder responder, const Frontend& frontend, PaddleForm form)
      : HttpInference(std::move(responder)), frontend_(frontend), form_(form) {}

 private:
  Result<protocol::InferRequest> decode(net::Request& request, const Version& version, protocol::InferRequest,
                                        std::string& field) override {
    SERIN_TRY(protocol::PaddleRequest decoded,
              protocol::decode_paddle(form_, std::move(request.body), version.signature(), &field, frontend_.limits));
    log_id_ = decoded.log_id;
    return std::move(decoded.infer);
  }
  net::Response encode(const Finished& finished, net::Response) override {
    const OutputViews outputs(finished);
    return typed(json_response(protocol::encode_paddle(form_, finished.version.model(), named_outputs(finished, outputs), log_id_)));
  }
  net::Response refusal(const Error& error, std::string_view field) override {
    net::Response response = error_response(error, field);
    response.body = protocol::encode_paddle_error(form_, error.message);
    if (frontend_.dialect == Dialect::kPaddle) response.status = 200;
    return typed(std::move(response));
  }
  net::Response typed(net::Response response) const {
    if (form_ == PaddleForm::kProto) response.headers.set("Content-Type", "application/proto");
    return response;
  }

  const Frontend& frontend_;
  const PaddleForm form_;
  uint64_t log_id_ = 0;
};

/// The model of a service that names none.
Result<std::shared_ptr<Version>> only_version(const Catalogue& now) {
  if (now.models.size() == 1) return now.find(now.models.begin()->first, "");
  if (now.models.empty()) return Error{Code::kUnavailable, "there is no model"};
  return Error{Code::kInvalidArgument,
               fmt::format("this path takes a server with one model, there are {}: POST /<model>/prediction", now.models.size())};
}

}  // namespace

bool PaddleApi::serves(std::string_view path) const {
  if (path == "/GeneralModelService/inference" || path == "/GeneralModelService/debug") return true;
  return path.ends_with(kPrediction) && path.size() > kPrediction.size() + 1 && path.find('/', 1) == path.size() - kPrediction.size();
}

void PaddleApi::handle(net::Request&& given, net::Responder responder) {
  net::Request request = std::move(given);  // its memory is released here, not when the answer has left
  if (request.method != "POST") {
    net::Response response = wrong_verb("POST");
    response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
    return responder.send(std::move(response));
  }
  const bool pipeline = !request.path.starts_with(kService);
  const bool proto = request.headers.get("Content-Type").starts_with("application/proto");  // and application/protobuf
  const PaddleForm form = pipeline ? PaddleForm::kPipeline : proto ? PaddleForm::kProto : PaddleForm::kJson;
  const Catalogue& now = frontend_.catalogue();
  auto version = pipeline ? now.find(request.path.substr(1, request.path.size() - 1 - kPrediction.size()), "") : only_version(now);
  HttpInference::start(std::make_shared<PaddleInference>(std::move(responder), frontend_, form), frontend_, std::move(version), "",
                       std::move(request));
}

}  // namespace serin::serving
