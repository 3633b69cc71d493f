#include "runtime/serving/apis/dialects/ovms_api.h"

#include <fmt/format.h>

#include "runtime/serving/apis/dialects/tfserving_models.h"
#include "runtime/serving/apis/http_answers.h"
#include "runtime/serving/apis/model_control.h"

namespace serin::serving {
namespace {

constexpr std::string_view kStatusPath = "/v1/config";

net::Response states(const Catalogue& now, int status) {
  std::string body = "{";
  for (const auto& [name, model] : now.models) {
    if (body.size() > 1) body += ',';
    const auto found = servable_status(now, {.model = name, .version = "", .label = ""});
    body += net::json_quote(name) + ':' + (found ? print_json(*found) : "{}");
  }
  return json_response(body + '}', status);
}

/// The sentences that users look for; where on this machine the file lies is in the log. Of a model the reason is told, too.
net::Response reload_failed(const Error& why) {
  switch (why.code) {
    case Code::kUnavailable:
      return net::json_error(500, "Reloading models versions failed. Check server logs for more info. " + why.message);
    case Code::kNotFound:
    case Code::kPermissionDenied:
    case Code::kIo: return net::json_error(500, "Config file not found or cannot open.");
    case Code::kOverloaded: return error_response(why);
    default: return net::json_error(412, "Reloading config file failed. Check server logs for more info.");
  }
}

}  // namespace

bool OvmsApi::serves(std::string_view path) const {
  return frontend_.dialect == Dialect::kOvms && (path == kStatusPath || path == kReloadPath);
}

void OvmsApi::handle(net::Request&& request, net::Responder responder) {
  const auto say = [this, to = std::make_shared<net::Responder>(std::move(responder))](net::Response response) {
    response.headers.set("x-serin-batch", protocol::print_batch_tag(frontend_.host.lone_tag()));
    to->send(std::move(response));
  };
  if (request.path == kStatusPath) return say(is_get(request) ? states(frontend_.catalogue(), 200) : wrong_verb("GET"));
  if (request.method != "POST") return say(wrong_verb("POST"));
  const auto changed = std::make_shared<bool>(false);
  reload(frontend_, changed, [this, say, changed](const Status& read) {
    say(read ? states(frontend_.catalogue(), *changed ? 201 : 200) : reload_failed(read.error()));
  });
}

}  // namespace serin::serving
