// rest_api.cc: one request in five steps: route, decode, queue, wait (HttpInference), encode. Everything but the wait happens on the io thread of the
// connection.

#include "runtime/serving/apis/rest/rest_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/number.h"
#include "runtime/base/version.h"
#include "runtime/serving/apis/http_answers.h"
#include "runtime/serving/apis/http_inference.h"
#include "runtime/serving/apis/message_json.h"
#include "runtime/serving/apis/nearest_path.h"
#include "runtime/serving/apis/rest/generate_inference.h"
#include "runtime/serving/repository/model_queries.h"

namespace serin::serving {
namespace {

/// A probe's no.
net::Response refused(std::string body, const Error& why) {
  net::Response response = json_response(std::move(body), 503);
  response.headers.set("x-serin-reason", why.message);
  return response;
}

}  // namespace

OipInference::OipInference() : HttpInference(net::Responder(nullptr)) {}

void OipInference::begin(net::Responder responder, const Frontend& frontend) {
  set_responder(std::move(responder));
  limits_ = &frontend.limits;
}

void OipInference::clear() { set_responder(net::Responder(nullptr)); }

size_t OipInference::work_to_decode(const net::Request& request) const {
  const size_t bytes = request.body.size();
  const auto json = parse_number<size_t>(request.headers.get(protocol::kJsonLength));
  return json && *json < bytes ? *json + (bytes - *json) / kBinaryIsFaster : bytes;
}

Result<protocol::InferRequest> OipInference::decode(net::Request& request, const Version& version, protocol::InferRequest memory,
                                                    std::string& field) {
  if (!request.headers.has(protocol::kJsonLength) && protocol::is_lone_element(request.body, version.signature()))
    return protocol::decode_lone_element(request.body, version.signature(), *limits_, std::move(memory));
  protocol::OipBody body{std::move(request.body), {}};
  if (request.headers.has(protocol::kJsonLength)) {
    body.json_bytes = parse_number<size_t>(request.headers.get(protocol::kJsonLength));
    if (!body.json_bytes) {
      field = protocol::kJsonLength;
      return Error{Code::kInvalidArgument, fmt::format("header {} must be a number of bytes", protocol::kJsonLength)};
    }
  }
  auto decoded = protocol::decode_infer_request(std::move(body), version.signature(), &field, *limits_, std::move(memory));
  request.body = std::move(body.bytes);  // NOLINT(bugprone-use-after-move): the codec leaves it to its owner
  if (!decoded && field == protocol::kInstances)
    return Error{decoded.error().code, fmt::format("{}: POST /v1/models/{}:predict takes it", decoded.error().message, version.model())};
  return decoded;
}

net::Response OipInference::encode(const Finished& finished, net::Response blank) {
  const Version& version = finished.version;
  const OutputViews views(finished);
  const auto outputs = named_outputs(finished, views);
  const protocol::InferResponse message{version.model(), version.version(), finished.id, outputs};
  if (const Status written = write_shared(message.outputs); !written) return error_response(written.error());
  protocol::OipBody body = protocol::encode_infer_response(message, std::move(blank.body));
  blank.body = std::move(body.bytes);
  blank.headers.set("Content-Type", body.json_bytes ? "application/octet-stream" : "application/json");
  if (body.json_bytes) blank.headers.set(protocol::kJsonLength, std::to_string(*body.json_bytes));
  return blank;
}

/// /v2/models/<model>[/versions/<version>][/<action>]
struct RestApi::Route {
  std::string_view model, version, action;

  bool infers() const { return action == "infer" || action == "generate" || action == "generate_stream"; }
  static std::optional<Route> parse(std::string_view path) {
    constexpr std::string_view kPrefix = "/v2/models/";
    if (!path.starts_with(kPrefix)) return std::nullopt;
    path.remove_prefix(kPrefix.size());
    Route route;
    route.model = take_segment(path);
    route.action = take_segment(path);
    if (route.action == "versions") {
      route.version = take_segment(path);
      route.action = take_segment(path);
      if (route.version.empty()) return std::nullopt;
    }
    if (route.model.empty() || !path.empty() || (route.model == "stats" && route.action.empty())) return std::nullopt;
    return route;
  }
};

RestApi::RestApi(Frontend& frontend) : frontend_(frontend), inferences_(frontend.loops.size()) {}

void RestApi::handle(net::Request&& request, net::Responder responder) {
  const std::string_view path = request.path;
  const auto route = Route::parse(path);
  if (route && route->infers() && request.method == "POST") {
    return HttpInference::start(begin(*route, std::move(responder)), frontend_, frontend_.catalogue().find(route->model, route->version),
                                route->version, std::move(request));
  }
  net::Response response = route ? answer_about(*route, request) : answer(path, request);
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
  responder.send(std::move(response));
}

std::shared_ptr<HttpInference> RestApi::begin(const Route& route, net::Responder responder) {
  if (route.action != "infer")
    return std::make_shared<GenerateInference>(std::move(responder), frontend_, route.action == "generate_stream");
  std::shared_ptr<OipInference> inference = inferences_[responder.loop().index()].take();
  inference->begin(std::move(responder), frontend_);
  return inference;
}

net::Response RestApi::answer_about(const Route& route, const net::Request& request) {
  if (route.infers()) return wrong_verb("POST");
  if (!route.action.empty() && route.action != "ready" && route.action != "config" && route.action != "stats")
    return unknown_path(frontend_, request);
  if (!is_get(request)) return wrong_verb("GET", request.method == "POST" ? path_meant(frontend_, request) : "");
  if (route.action == "ready") return readiness(route);
  if (route.action == "config") return config(route);
  return route.action == "stats" ? statistics(route) : metadata(route);
}

net::Response RestApi::answer(std::string_view path, const net::Request& request) {
  const bool known =
      path == "/v2" || path == "/v2/health/live" || path == "/v2/health/ready" || path == "/v2/models" || path == "/v2/models/stats";
  if (!known) return unknown_path(frontend_, request);
  if (!is_get(request)) return wrong_verb("GET");
  if (path == "/v2") return server_metadata();
  if (path == "/v2/models") return models_response(frontend_.catalogue());
  if (path == "/v2/models/stats") return statistics({});
  if (path == "/v2/health/ready") {
    const Status ready = frontend_.ready();
    return ready ? json_response(R"({"ready":true})") : refused(R"({"ready":false})", ready.error());
  }
  const Status live = frontend_.live();
  return live ? json_response(R"({"live":true})") : refused(R"({"live":false})", live.error());
}

net::Response RestApi::metadata(const Route& route) {
  const Catalogue& now = frontend_.catalogue();  // one look: a second one may be a newer catalogue, without the model
  const auto version = now.find(route.model, route.version);
  if (!version) return error_response(version.error());
  const auto versions = now.models.find(route.model)->second.ready_versions();
  net::Response response =
      json_response(protocol::encode_model_metadata(route.model, versions, (*version)->platform(), (*version)->signature().inputs,
                                                    (*version)->signature().outputs, (*version)->parameters()));
  response.headers.set("x-serin-version", (*version)->version());
  return response;
}

net::Response RestApi::readiness(const Route& route) {
  const Status ready = frontend_.catalogue().ready(route.model, route.version);
  if (!ready && ready.error().code != Code::kUnavailable) return error_response(ready.error());
  std::string body = fmt::format(R"({{"name":{},"ready":{}}})", net::json_quote(route.model), ready.has_value());
  return ready ? json_response(std::move(body)) : refused(std::move(body), ready.error());
}

net::Response RestApi::statistics(const Route& route) {
  inference::ModelStatisticsRequest request;
  request.set_name(std::string(route.model));
  request.set_version(std::string(route.version));
  const auto found = model_statistics(frontend_.catalogue(), request);
  if (!found) return error_response(found.error());
  std::string body;
  append_json(body, *found);
  return json_response(std::move(body));
}

net::Response RestApi::config(const Route& route) {
  inference::ModelConfigRequest request;
  request.set_name(std::string(route.model));
  request.set_version(std::string(route.version));
  const auto found = model_config(frontend_.catalogue(), request);
  if (!found) return error_response(found.error());
  std::string body;
  append_json(body, found->config(), /*empty_texts=*/true);
  return json_response(std::move(body));
}

net::Response RestApi::server_metadata() {
  return json_response(fmt::format(R"({{"name":{},"version":"{}","extensions":["{}"]}})", net::json_quote(frontend_.name), kVersion,
                                   fmt::join(kExtensions, "\",\"")));
}

}  // namespace serin::serving
