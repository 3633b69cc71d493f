// rest_api.cc: one request in five steps: route, decode, queue, wait (HttpInference), encode. Everything but the wait happens on the io thread of the
// connection.

#include "runtime/serving/rest_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/number.h"
#include "runtime/base/version.h"
#include "runtime/serving/http_answers.h"
#include "runtime/serving/http_inference.h"
#include "runtime/serving/message_json.h"
#include "runtime/serving/model_queries.h"

namespace serin::serving {
namespace {

/// A probe's no.
net::Response refused(std::string body, const Error& why) {
  net::Response response = json_response(std::move(body), 503);
  response.headers.set("x-serin-reason", why.message);
  return response;
}

class OipInference final : public HttpInference {
 public:
  OipInference(net::Responder responder, const Frontend& frontend)
      : HttpInference(std::move(responder)), limits_{.shared = frontend.regions()} {}

 private:
  Result<protocol::InferRequest> decode(net::Request& request, const Version& version, std::string& field) override {
    protocol::OipBody body{std::move(request.body), {}};
    if (request.headers.has(protocol::kJsonLength)) {
      body.json_bytes = parse_number<size_t>(request.headers.get(protocol::kJsonLength));
      if (!body.json_bytes) {
        field = protocol::kJsonLength;
        return Error{Code::kInvalidArgument, fmt::format("header {} must be a number of bytes", protocol::kJsonLength)};
      }
    }
    auto decoded = protocol::decode_infer_request(std::move(body), version.signature(), &field, limits_);
    if (decoded) id_ = std::move(decoded->id);
    return decoded;
  }

  net::Response encode(const Finished& finished) override {
    const Version& version = finished.version;
    const OutputViews outputs(finished);
    const protocol::InferResponse message{version.model(), version.version(), id_, named_outputs(finished, outputs)};
    if (const Status written = write_shared(message.outputs); !written) return error_response(written.error());
    protocol::OipBody body = protocol::encode_infer_response(message);
    net::Response response = json_response(std::move(body.bytes));
    if (body.json_bytes) {
      response.headers.set("Content-Type", "application/octet-stream");
      response.headers.set(protocol::kJsonLength, std::to_string(*body.json_bytes));
    }
    return response;
  }

  const protocol::RequestLimits limits_;
  std::string id_;
};

}  // namespace

/// /v2/models/<model>[/versions/<version>][/<action>]
struct RestApi::Route {
  std::string model, version, action;

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

void RestApi::handle(net::Request request, net::Responder responder) {
  const std::string_view path = request.path;
  const auto route = Route::parse(path);
  if (route && route->action == "infer" && request.method == "POST")
    return HttpInference::start(std::make_shared<OipInference>(std::move(responder), frontend_), frontend_,
                                frontend_.catalogue().find(route->model, route->version), route->version, std::move(request));
  net::Response response = route ? answer_about(*route, request) : answer(path, request);
  response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
  responder.send(std::move(response));
}

net::Response RestApi::answer_about(const Route& route, const net::Request& request) {
  if (route.action == "infer") return wrong_verb("POST");
  if (!route.action.empty() && route.action != "ready" && route.action != "config" && route.action != "stats")
    return net::json_error(404, "Not Found");
  if (!is_get(request)) return wrong_verb("GET");
  if (route.action == "ready") return readiness(route);
  if (route.action == "config") return config(route);
  return route.action == "stats" ? statistics(route) : metadata(route);
}

net::Response RestApi::answer(std::string_view path, const net::Request& request) {
  const bool known =
      path == "/v2" || path == "/v2/health/live" || path == "/v2/health/ready" || path == "/v2/models" || path == "/v2/models/stats";
  if (!known) return net::json_error(404, "Not Found");
  if (!is_get(request)) return wrong_verb("GET");
  if (path == "/v2") return server_metadata();
  if (path == "/v2/models") return models_response(frontend_.catalogue());
  if (path == "/v2/models/stats") return statistics({});
  if (path == "/v2/health/ready") return frontend_.ready() ? json_response(R"({"ready":true})") : json_response(R"({"ready":false})", 503);
  const Status usable = frontend_.catalogue().usable();
  return usable ? json_response(R"({"live":true})") : refused(R"({"live":false})", usable.error());
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
  const auto version = frontend_.catalogue().find(route.model, route.version);
  if (!version && version.error().code != Code::kUnavailable) return error_response(version.error());
  const Status usable = version ? (*version)->usable() : Status(version.error());
  std::string body = fmt::format(R"({{"name":{},"ready":{}}})", net::json_quote(route.model), usable.has_value());
  return usable ? json_response(std::move(body)) : refused(std::move(body), usable.error());
}

net::Response RestApi::statistics(const Route& route) {
  inference::ModelStatisticsRequest request;
  request.set_name(route.model);
  request.set_version(route.version);
  const auto found = model_statistics(frontend_.catalogue(), request);
  if (!found) return error_response(found.error());
  std::string body;
  append_json(body, *found);
  return json_response(std::move(body));
}

net::Response RestApi::config(const Route& route) {
  inference::ModelConfigRequest request;
  request.set_name(route.model);
  request.set_version(route.version);
  const auto found = model_config(frontend_.catalogue(), request);
  if (!found) return error_response(found.error());
  std::string body;
  append_json(body, found->config(), /*empty_texts=*/true);
  return json_response(std::move(body));
}

net::Response RestApi::server_metadata() {
  return json_response(fmt::format(R"({{"name":"{}","version":"{}","extensions":["{}"]}})", name_of_server(frontend_.dialect), kVersion,
                                   fmt::join(kExtensions, "\",\"")));
}

}  // namespace serin::serving
