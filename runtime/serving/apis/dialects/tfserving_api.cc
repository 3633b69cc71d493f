#include "runtime/serving/apis/dialects/tfserving_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/protocol/tensorflow/tfserving_rest.h"
#include "runtime/serving/apis/dialects/tfserving_models.h"
#include "runtime/serving/apis/http_answers.h"
#include "runtime/serving/apis/http_inference.h"
#include "runtime/serving/apis/nearest_path.h"

namespace serin::serving {
namespace {

using net::equal_ignoring_case;
using protocol::TfMethod;

constexpr std::string_view kRoot = "/v1/models";

void allow_any_origin(net::Response& response) {
  response.headers.set("Access-Control-Allow-Origin", "*");
  response.headers.set("Access-Control-Allow-Methods", "POST, GET");
  response.headers.set("Access-Control-Allow-Headers", "Authorization, Content-Type");
}

class TfInference : public HttpInference {
 public:
  /// `version`: the one that is asked; null: there is none, which is the answer.
  TfInference(net::Responder responder, const Frontend& frontend, std::shared_ptr<Version> version)
      : HttpInference(std::move(responder)), frontend_(frontend), version_(std::move(version)) {}

 protected:
  TfApi api() const override { return TfApi::kPredict; }
  virtual Result<std::string> print(std::span<const protocol::NamedTensor> outputs) = 0;

  net::Response encode(const Finished& finished, net::Response) final {
    const OutputViews outputs(finished);
    Result<std::string> body = print(named_outputs(finished, outputs));
    return body ? completed(json_response(std::move(*body))) : refusal(body.error(), {});
  }
  /// For the codec, which reads the name in the body.
  protocol::FindTfSignature find_for(TfMethod method) {
    return [this, method](std::string_view name) -> Result<const protocol::Signature*> {
      SERIN_TRY(meant_, find_signature(version_, name, method));
      return &meant_->signature();
    };
  }
  std::shared_ptr<Version> meant(const std::shared_ptr<Version>& found) const final { return meant_ ? meant_ : found; }

  net::Response refusal(const Error& error, std::string_view field) final { return completed(error_response(error, field)); }

  const Frontend& frontend_;

 private:
  net::Response completed(net::Response response) const {
    if (frontend_.cors) allow_any_origin(response);
    return response;
  }

  const std::shared_ptr<Version> version_;
  std::shared_ptr<Version> meant_;  // the version with the signature that the body names
};

class Prediction final : public TfInference {
 public:
  using TfInference::TfInference;

 private:
  Result<protocol::InferRequest> decode(net::Request& request, const Version&, protocol::InferRequest, std::string& field) override {
    SERIN_TRY(protocol::TfPredict decoded,
              protocol::decode_tf_predict(std::move(request.body), find_for(TfMethod::kPredict), &field, frontend_.limits));
    rows_ = decoded.rows;
    return std::move(decoded.infer);
  }
  Result<std::string> print(std::span<const protocol::NamedTensor> outputs) override {
    return protocol::encode_tf_predict(rows_ || frontend_.dialect == Dialect::kKserve ? "predictions" : "outputs", outputs, rows_);
  }

  bool rows_ = false;
};

class ScoredExamples final : public TfInference {
 public:
  ScoredExamples(net::Responder responder, const Frontend& frontend, std::shared_ptr<Version> version, TfMethod method)
      : TfInference(std::move(responder), frontend, std::move(version)), method_(method) {}

 private:
  Result<protocol::InferRequest> decode(net::Request& request, const Version&, protocol::InferRequest, std::string& field) override {
    return protocol::decode_tf_examples(std::move(request.body), method_, find_for(method_), &field, frontend_.limits);
  }
  Result<std::string> print(std::span<const protocol::NamedTensor> outputs) override {
    return protocol::encode_tf_results(method_, outputs);
  }
  TfApi api() const override { return method_ == TfMethod::kClassify ? TfApi::kClassify : TfApi::kRegress; }

  const TfMethod method_;
};

/// What Any has inside stands in it by name, without the type that proto3's JSON writes.
std::string print_metadata(const tensorflow::serving::GetModelMetadataResponse& answer) {
  tensorflow::serving::SignatureDefMap signatures;
  answer.metadata().at("signature_def").UnpackTo(&signatures);
  return fmt::format(R"({{"model_spec":{},"metadata":{{"signature_def":{}}}}})", print_json(answer.model_spec()), print_json(signatures));
}

}  // namespace

/// /v1/models[/<model>[/versions/<version>|/labels/<label>]][:<verb>|/metadata]
struct TfServingApi::Route {
  Servable servable;
  std::string verb;  ///< "predict", "metadata" ...: lower case; empty: none

  static std::optional<Route> parse(std::string_view path) {
    path.remove_prefix(kRoot.size());
    Route route;
    if (const size_t colon = path.rfind(':'); colon != std::string_view::npos) {
      route.set_verb(path.substr(colon + 1));
      path = path.substr(0, colon);
    }
    if (path.empty()) return route.verb.empty() ? std::optional(route) : std::nullopt;
    path.remove_prefix(1);
    route.servable.model = take_segment(path);
    if (std::string_view rest = path; !rest.empty()) {
      const std::string_view kind = take_segment(rest);
      const bool version = equal_ignoring_case(kind, "versions");
      if (version || equal_ignoring_case(kind, "labels")) {
        std::string& name = version ? route.servable.version : route.servable.label;
        name = take_segment(rest);
        const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
        if (name.empty() || (version && !std::ranges::all_of(name, is_digit))) return std::nullopt;
        path = rest;
      }
    }
    if (equal_ignoring_case(path, "metadata") && route.verb.empty())
      route.verb = "metadata";
    else if (!path.empty())
      return std::nullopt;
    const Servable& servable = route.servable;
    const bool plain = (servable.model + servable.label).find(':') == std::string::npos;
    return plain && !servable.model.empty() ? std::optional(route) : std::nullopt;
  }

  std::optional<TfMethod> method() const {
    for (const TfMethod method : {TfMethod::kPredict, TfMethod::kClassify, TfMethod::kRegress})
      if (verb == protocol::tf_method_name(method)) return method;
    return std::nullopt;
  }

 private:
  void set_verb(std::string_view text) {
    for (const char c : text) verb += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
};

bool TfServingApi::serves(std::string_view path) const {
  if (path == "/") return frontend_.dialect == Dialect::kKserve;
  const std::string_view rest = path.substr(std::min(path.size(), kRoot.size()));
  return equal_ignoring_case(path.substr(0, kRoot.size()), kRoot) && (rest.empty() || rest.front() == '/' || rest.front() == ':');
}

void TfServingApi::handle(net::Request&& given, net::Responder responder) {
  net::Request request = std::move(given);  // its memory is released here, not when the answer has left
  const auto route = request.path == "/" ? std::nullopt : Route::parse(request.path);
  const auto method = route ? route->method() : std::nullopt;
  if (request.method == "POST" && method) {
    auto version = find_servable(frontend_.catalogue(), route->servable);
    std::shared_ptr<HttpInference> call;
    if (*method == TfMethod::kPredict)
      call = std::make_shared<Prediction>(std::move(responder), frontend_, version ? *version : nullptr);
    else
      call = std::make_shared<ScoredExamples>(std::move(responder), frontend_, version ? *version : nullptr, *method);
    return HttpInference::start(call, frontend_, std::move(version), route->servable.version, std::move(request));
  }
  net::Response response = answer(request);
  if (frontend_.cors) allow_any_origin(response);
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
  responder.send(std::move(response));
}

net::Response TfServingApi::answer(const net::Request& request) {
  const auto refuse = [](std::string message) { return error_response({Code::kInvalidArgument, std::move(message)}); };
  if (request.method == "OPTIONS") {
    const std::string_view origin = request.headers.get("Origin");
    if (origin.starts_with("http://") || origin.starts_with("https://")) return json_response("");
    return refuse("Origin header is missing in CORS preflight");
  }
  const bool kserve = frontend_.dialect == Dialect::kKserve;
  if (request.path == "/") return is_get(request) ? json_response(R"({"status":"alive"})") : wrong_verb("GET");
  const auto route = Route::parse(request.path);
  if (kserve && request.method == "POST" && route && route->verb == "explain")
    return net::json_error(501, fmt::format("model '{}' has no explainer", route->servable.model));
  const bool about = route && (route->verb.empty() || route->verb == "metadata");
  if (!is_get(request) || !about)
    return refuse(fmt::format("Malformed request: {} {}{}", request.method, request.path.substr(0, 512), path_meant(frontend_, request)));
  const Servable& servable = route->servable;
  if (servable.model.empty()) return kserve ? models_response(frontend_.catalogue()) : refuse("Missing model name in request.");
  const Catalogue& now = frontend_.catalogue();
  if (route->verb == "metadata") {
    const auto found = servable_metadata(now, servable);
    return found ? json_response(print_metadata(*found)) : error_response(found.error());
  }
  if (kserve) return kserve_readiness(*route);
  const auto found = servable_status(now, servable);
  return found ? json_response(print_json(*found)) : error_response(found.error());
}

net::Response TfServingApi::kserve_readiness(const Route& route) {
  const auto version = find_servable(frontend_.catalogue(), route.servable);
  const Status usable = version ? (*version)->usable() : Status(version.error());
  if (!usable) return error_response(usable.error());
  return json_response(fmt::format(R"({{"name":{},"ready":true}})", net::json_quote(route.servable.model)));
}

}  // namespace serin::serving
