// admin_api.cc: maps paths to commands and their results to JSON and HTTP statuses. The controller decides what the state of a rollout
// allows, and access.h decides which callers may use a command. The role that a command requires is written next to its name, so that no
// other reading of a path can miss it.

#include "router/admin/admin_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "router/admin/admin_answers.h"
#include "router/admin/admin_requests.h"
#include "router/admin/browser_guard.h"
#include "router/admin/gates.h"
#include "router/admin/openapi.h"
#include "router/admin/outcome_reports.h"
#include "router/admin/permissions.h"
#include "router/config/read_rollout.h"
#include "router/dashboard/dashboard.h"
#include "router/view/status_json.h"
#include "runtime/base/config.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

using net::Request;
using net::Response;

constexpr std::string_view kRollouts = "/v1/rollouts", kServices = "/v1/services", kVerdicts = "/v1/verdicts/", kHealth = "/health/",
                           kOpenApi = "/v1/openapi.json", kOfOneService = "/v1/outcomes", kSchema = "/v1/rollout.schema.json";
constexpr std::string_view kGates = "/gates/", kHistory = "/history", kTimeline = "/timeline", kEvents = "/events", kVerdict = "/verdict",
                           kOutcomes = "/outcomes";
struct Verb {
  std::string_view name;
  Role needs;
};
constexpr std::array<Verb, 7> kVerbs = {{{"pause", Role::kOperator},
                                         {"resume", Role::kOperator},
                                         {"promote", Role::kAdmin},
                                         {"abort", Role::kOperator},
                                         {"undo", Role::kOperator},
                                         {"retry", Role::kOperator},
                                         {"set-weight", Role::kOperator}}};

bool is_read(const Request& request) { return request.method == "GET" || request.method == "HEAD"; }
/// Asks, although it is a POST.
bool is_gate(const Request& request) { return request.path.starts_with(kRollouts) && request.path.find(kGates) != std::string::npos; }

/// Says nothing that changes traffic, and comes a thousand times.
bool is_report(const Request& request) {
  const bool outcomes = request.path == kOfOneService || (request.path.starts_with(kServices) && request.path.ends_with(kOutcomes));
  return request.method == "POST" && outcomes;
}

/// Flagger sends no headers of its user's: its token stands in the metadata of the webhook.
std::string token_in_body(const Request& request) {
  if (!is_gate(request) || request.headers.has("authorization")) return "";
  const auto body = config::Node::parse(request.body, "request body");
  const auto metadata = body ? body->find("metadata") : std::nullopt;
  const auto token = metadata ? metadata->text("token", "") : Result<std::string>("");
  return token ? *token : "";
}

std::string permissions_json(const Caller& caller) {
  Permissions permissions{.name = caller.name, .role = caller.role};
  if (caller.role >= Role::kOperator) permissions.may.emplace_back("start");
  for (const Verb& verb : kVerbs)
    if (caller.role >= verb.needs) permissions.may.push_back(verb.name);
  return schema::to_json(kPermissions, permissions);
}

}  // namespace

AdminApi::AdminApi(const RouterConfig& config, Controller& controller, Outcomes& outcomes, Access& access, const AuditStream& audit,
                   metrics::Registry& metrics)
    : config_(config),
      controller_(controller),
      outcomes_(outcomes),
      access_(access),
      audit_(audit),
      metrics_(metrics),
      on_loopback_(config.admin.listen.is_loopback()),
      events_(config, controller, metrics) {}

Response AdminApi::answer(const Request& request) {
  if (auto refused = refuse_browser(request, on_loopback_)) return *std::move(refused);
  if (request.path.starts_with(kHealth)) return health(request);
  if (auto page = dashboard_answer(request)) return *std::move(page);  // it asks for a token itself
  if (is_read(request) && request.path == kOpenApi) return document_response("application/json", openapi_document());
  if (is_read(request) && request.path == kSchema) return document_response("application/schema+json", rollout::spec_schema());
  Admission admission = access_.admit(request, token_in_body(request));
  Response response = admission.refusal ? *std::move(admission.refusal) : route(request, admission.caller);
  if (!is_read(request) && !is_gate(request) && !is_report(request) && response.status / 100 == 4)
    tell_refusal(request, admission.caller, response);
  return response;
}

void AdminApi::tell_refusal(const Request& request, const Caller& caller, const Response& response) const {
  if (response.status == 429) return;  // counted; a flood of lines would drown the others
  const auto body = config::Node::parse(response.body, "answer");
  audit_.refused({.actor = actor_of(request, caller),
                  .peer = request.peer,
                  .method = request.method,
                  .path = request.path,
                  .status = response.status,
                  .error = body ? *body->text("error", "") : ""});
}

/// Probes have no token, and say nothing that needs one.
Response AdminApi::health(const Request& request) const {
  const std::string_view which = std::string_view(request.path).substr(kHealth.size());
  if (which != "live" && which != "ready") return not_found(request.path);
  if (!is_read(request)) return method_not_allowed("GET, HEAD");
  if (which == "live") return json_response(200, R"({"live":true})");
  return ready_ ? json_response(200, R"({"ready":true})") : net::json_error(503, "the router is ending");
}

Response AdminApi::route(const Request& request, const Caller& caller) {
  const std::string& path = request.path;
  if (path == kRollouts) {
    if (request.method == "POST") return start_rollout(request, caller);
    return is_read(request) ? list_rollouts() : method_not_allowed("GET, HEAD, POST");
  }
  if (path.starts_with(kRollouts) && path[kRollouts.size()] == '/') {
    const std::string rest = path.substr(kRollouts.size() + 1);
    const size_t colon = rest.rfind(':');
    if (colon != std::string::npos) return command(rest.substr(0, colon), rest.substr(colon + 1), request, caller);
    if (const size_t gates = rest.find(kGates); gates != std::string::npos)
      return gate(rest.substr(0, gates), rest.substr(gates + kGates.size()), request);
    if (request.method == "PUT" && rest.find('/') == std::string::npos) return apply_rollout(rest, request, caller);
    if (!is_read(request)) return method_not_allowed(rest.find('/') == std::string::npos ? "GET, HEAD, PUT" : "GET, HEAD");
    if (rest.ends_with(kHistory)) return history(rest.substr(0, rest.size() - kHistory.size()), request);
    if (rest.ends_with(kVerdict)) return verdict(rest.substr(0, rest.size() - kVerdict.size()), request);
    if (rest.ends_with(kTimeline)) return timeline(rest.substr(0, rest.size() - kTimeline.size()));
    if (rest.ends_with(kEvents)) return events(std::string_view(rest).substr(0, rest.size() - kEvents.size()), request);
    return status_response(200, controller_.status(rest));
  }
  if (path.starts_with(kVerdicts)) {
    if (!is_read(request)) return method_not_allowed("GET, HEAD");
    const auto verdict = controller_.explain(path.substr(kVerdicts.size()));
    return verdict ? json_response(200, *verdict) : error_response(verdict.error());
  }
  if (path.starts_with(kServices) && path[kServices.size()] == '/' && path.ends_with(kOutcomes) &&
      path.size() > kServices.size() + kOutcomes.size() + 1)
    return outcomes(path.substr(kServices.size() + 1, path.size() - kServices.size() - kOutcomes.size() - 1), request, caller);
  if (path == kOfOneService) return report_outcomes(request, caller);
  if (path == kOpenApi || path == kSchema) return method_not_allowed("GET, HEAD");
  if (path != kServices && path != "/v1/events" && path != "/v1/me" && path != "/metrics") return not_found(path);
  if (!is_read(request)) return method_not_allowed("GET, HEAD");
  if (path == kServices) return list_services();
  if (path == "/v1/events") return events(std::nullopt, request);
  if (path == "/v1/me") return json_response(200, permissions_json(caller));
  Response page;
  page.headers.set("Content-Type", metrics::Registry::kContentType);
  page.body = metrics_.render();
  return page;
}

Response AdminApi::list_rollouts() const { return json_response(200, rollouts_json(controller_.status())); }

Response AdminApi::list_services() const { return json_response(200, services_json(config_.services, controller_.status(), controller_)); }

Response AdminApi::history(const std::string& service, const Request& request) const {
  const auto limit = read_limit(request.query);
  if (!limit) return error_response(limit.error());
  const auto entries = controller_.history(service, *limit);
  return entries ? json_response(200, history_json(service, *entries)) : error_response(entries.error());
}

/// Of the version that the query names; without one, of the current or last rollout.
Result<Standing> AdminApi::standing(const std::string& service, const Request& request) const {
  SERIN_TRY(ServiceStatus status, controller_.status(service));
  if (request.query.empty()) return stand(status);
  SERIN_TRY(const std::string_view version, read_canary(request.query));
  std::vector<ServiceStatus> tracks;
  tracks.push_back(std::move(status));
  for (const ServiceConfig& config : config_.services) {
    if (config.track_of != service) continue;
    SERIN_TRY(ServiceStatus further, controller_.status(config.name));
    tracks.push_back(std::move(further));
  }
  return stand(tracks, version);
}

Response AdminApi::verdict(const std::string& service, const Request& request) const {
  const auto standing = this->standing(service, request);
  return standing ? json_response(200, standing_json(*standing)) : error_response(standing.error());
}

Response AdminApi::gate(const std::string& service, const std::string& type, const Request& request) const {
  if (request.method != "POST") return method_not_allowed("POST");
  const auto standing = this->standing(service, request);
  if (!standing) return error_response(standing.error());
  const auto opens = gate_opens(type, *standing);
  if (!opens) return net::json_error(404, fmt::format("no gate '{}'; there are {}", type, fmt::join(kGateTypes, ", ")));
  return json_response(*opens ? 200 : 409, standing_json(*standing));
}

Response AdminApi::timeline(const std::string& service) const {
  const auto timeline = controller_.timeline(service);
  return timeline ? json_response(200, timeline_json(service, *timeline)) : error_response(timeline.error());
}

/// The sums are those of the router that leads: it takes reports as it takes commands.
Response AdminApi::outcomes(const std::string& service, const Request& request, const Caller& caller) {
  const bool resets = request.method == "DELETE";
  if (request.method == "POST") return report_outcomes(service, request, caller);
  if (!resets && !is_read(request)) return method_not_allowed("DELETE, GET, HEAD, POST");
  if (resets)
    if (auto refusal = access_.require(Role::kOperator, caller, "reset outcomes")) return *std::move(refusal);
  if (auto elsewhere = at_leader(request)) return *std::move(elsewhere);
  return resets ? reset_outcomes(outcomes_, service, actor_of(request, caller)) : show_outcomes(outcomes_, service);
}

/// A request is known to the router that answered it and to no other, so that router counts its label.
Response AdminApi::report_outcomes(const std::string& service, const Request& request, const Caller& caller) {
  if (auto refusal = access_.require(Role::kOperator, caller, "report outcomes")) return *std::move(refusal);
  const auto reports = read_reports(request);
  if (!reports) return error_response(reports.error());
  if (!all_by_request(*reports))
    if (auto elsewhere = at_leader(request)) return *std::move(elsewhere);
  return take_reports(outcomes_, service, *reports);
}

/// Of the only service that has some.
Response AdminApi::report_outcomes(const Request& request, const Caller& caller) {
  if (request.method != "POST") return method_not_allowed("POST");
  std::vector<std::string> services;
  for (const ServiceConfig& service : config_.services)
    if (service.track_of.empty() && !service.outcomes.empty()) services.push_back(service.name);
  if (services.size() == 1) return report_outcomes(services.front(), request, caller);
  if (services.empty()) return error_response(Error{Code::kNotFound, "no service has `outcomes` in router.yaml"});
  return error_response(invalid(fmt::format("several services have outcomes: name one in the path, /v1/services/{{service}}/outcomes: {}",
                                            fmt::join(services, ", "))));
}

Response AdminApi::events(std::optional<std::string_view> service, const Request& request) {
  std::optional<size_t> index;
  if (service) {
    const auto found = std::ranges::find(config_.services, *service, &ServiceConfig::name);
    if (found == config_.services.end()) return error_response(Error{Code::kNotFound, fmt::format("no service '{}'", *service)});
    index = static_cast<size_t>(found - config_.services.begin());
  }
  return events_.open(*request.loop, index, request.headers.get("last-event-id"));
}

Result<rollout::Spec> AdminApi::read_spec(const Request& request) const {
  SERIN_TRY(const config::Node document, read_body(request));
  return read_rollout(document, config_);
}

Response AdminApi::start_rollout(const Request& request, const Caller& caller) {
  if (auto refusal = access_.require(Role::kOperator, caller, "start")) return *std::move(refusal);
  if (auto elsewhere = at_leader(request)) return *std::move(elsewhere);
  auto spec = read_spec(request);
  if (!spec) return error_response(spec.error());
  const auto command = read_request(request, caller);
  if (!command) return error_response(command.error());
  return status_response(201, controller_.start(*std::move(spec), *command));
}

/// Declarative: the same document may be sent again and again.
Response AdminApi::apply_rollout(const std::string& service, const Request& request, const Caller& caller) {
  if (auto refusal = access_.require(Role::kOperator, caller, "start")) return *std::move(refusal);
  if (auto elsewhere = at_leader(request)) return *std::move(elsewhere);
  const bool dry_run = request.query == "dry_run=true";
  if (!dry_run && !request.query.empty() && request.query != "dry_run=false")
    return error_response(invalid(fmt::format("query: must be dry_run=true or dry_run=false, not '{}'", request.query)));
  auto spec = read_spec(request);
  if (!spec) return error_response(spec.error());
  if (spec->service != service)
    return error_response(invalid(fmt::format("service: must be '{}' as in the path, not '{}'", service, spec->service)));
  const auto command = read_request(request, caller);
  if (!command) return error_response(command.error());
  const auto applied = controller_.apply(*std::move(spec), *command, dry_run);
  if (!applied) return error_response(applied.error());
  const bool starts = applied->action == ApplyAction::kStart || applied->action == ApplyAction::kReplace;
  return json_response(starts && !dry_run ? 201 : 200, applied_json(*applied));
}

Response AdminApi::command(const std::string& service, const std::string& verb, const Request& request, const Caller& caller) {
  const auto* known = std::ranges::find(kVerbs, verb, &Verb::name);
  if (known == kVerbs.end())
    return net::json_error(
        404, fmt::format("no command '{}'; there are {}", verb, fmt::join(kVerbs | std::views::transform(&Verb::name), ", ")));
  if (request.method != "POST") return method_not_allowed("POST");
  if (auto refusal = access_.require(known->needs, caller, known->name)) return *std::move(refusal);
  if (verb != "abort")  // which any router may
    if (auto elsewhere = at_leader(request)) return *std::move(elsewhere);
  return status_response(200, run_command(service, verb, request, caller));
}

/// Where several routers share the rollouts, the leader changes them.
std::optional<Response> AdminApi::at_leader(const Request& request) const {
  const auto replicas = controller_.replicas();
  if (!replicas || replicas->leads || replicas->leader_admin.empty()) return std::nullopt;
  Response response = net::json_error(307, fmt::format("router '{}' leads: ask it at {}", replicas->leader, replicas->leader_admin));
  response.headers.set("Location", replicas->leader_admin + request.target);
  return response;
}

Result<ServiceStatus> AdminApi::run_command(const std::string& service, const std::string& verb, const Request& request,
                                            const Caller& caller) {
  SERIN_TRY(Controller::Request command, read_request(request, caller));
  SERIN_TRY(const config::Node body, read_body(request));
  if (verb == "set-weight") {
    SERIN_CHECK(body.allow_only({"weight", "reason"}));
    SERIN_TRY(command.reason, read_reason(body));
    SERIN_TRY(const config::Node weight, body.at("weight"));
    SERIN_TRY(const std::string text, weight.text());
    const auto ppm = rollout::parse_weight(text);
    if (!ppm) return weight.error(ppm.error().message);
    return controller_.set_weight(service, *ppm, command);
  }
  SERIN_CHECK(body.allow_only({"reason"}));
  SERIN_TRY(command.reason, read_reason(body));
  if (verb == "pause") return controller_.pause(service, command);
  if (verb == "resume") return controller_.resume(service, command);
  if (verb == "promote") return controller_.promote(service, command);
  if (verb == "undo") return controller_.undo(service, command);
  if (verb == "retry") return controller_.retry(service, command);
  return controller_.abort(service, command);
}

}  // namespace serin::router
