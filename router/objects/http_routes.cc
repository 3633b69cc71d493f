// http_routes.cc: one round after the other. Each compares the shares as they are with the route as it was read last, so nothing depends on
// having seen each change.

#include "router/objects/http_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "router/control/services.h"
#include "router/objects/route_weights.h"
#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"

namespace serin::router {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRoundEvery{500};
constexpr std::chrono::seconds kReadEvery{5};  // whether somebody else has changed it
constexpr double kLeadsFor = 3;                // seconds without the shared store: a while after that another router leads
constexpr int kAttempts = 3;                   // at a route that is changed at the same moment

}  // namespace

struct HttpRoutes::State {
  struct Route {
    const ServiceConfig* service;
    size_t index;  ///< of the service
    std::string name, path;
    std::shared_ptr<metrics::Counter> written, refused;
    std::shared_ptr<void> gauge;
    std::atomic<Clock::time_point> behind_since{Clock::time_point()};  ///< Clock::time_point(): it has the weights

    // Of the thread alone.
    std::optional<json::object> seen;  ///< as it was read or written last
    Clock::time_point read_at, next_attempt;
    std::vector<BackendShare> tried;  ///< at the last attempt
    std::string trouble;              ///< said once, until another
    kubernetes::Backoff backoff;
  };

  State(const kubernetes::Cluster& cluster, const RouterConfig& config, Controller& of_rollouts, metrics::Registry& metrics);
  ~State() { end(); }
  void end() {
    ending = true;
    sleeper.end();
    api.stop();
    if (thread.joinable()) thread.join();
  }

  void run();
  bool leads() const;
  void forget(Route& route);
  void look(Route& route);
  std::vector<BackendShare> shares_of(const Route& route) const;
  Status bring(Route& route, const std::vector<BackendShare>& shares);
  void tell(Route& route, const Split& split, const Status& done);

  Controller& controller;
  kubernetes::ApiClient api;
  std::vector<std::unique_ptr<Route>> routes;
  std::atomic<bool> ending{false};
  Sleeper sleeper;
  std::thread thread;
};

HttpRoutes::State::State(const kubernetes::Cluster& cluster, const RouterConfig& config, Controller& of_rollouts,
                         metrics::Registry& metrics)
    : controller(of_rollouts), api(cluster) {
  for (size_t i = 0; i < config.services.size(); ++i) {
    const ServiceConfig& service = config.services[i];
    if (!service.http_route || !service.track_of.empty()) continue;
    const std::string& name_space = service.http_route->name_space.empty() ? cluster.name_space : service.http_route->name_space;
    auto route = std::make_unique<Route>();
    route->service = &service;
    route->index = i;
    route->name = fmt::format("{}/{}", name_space, service.http_route->name);
    route->path = fmt::format("/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes/{}", name_space, service.http_route->name);
    const auto counter = [&](const char* result) {
      return metrics.counter("serin_route_http_route_writes_total", "Attempts to write the weights of an HTTPRoute.",
                             {{"service", service.name}, {"result", result}});
    };
    route->written = counter("written");
    route->refused = counter("failed");
    route->gauge =
        metrics.gauge_callback("serin_route_http_route_behind_seconds", "Since when an HTTPRoute lacks the weights that it should have.",
                               {{"service", service.name}}, [raw = route.get()] {
                                 const Clock::time_point since = raw->behind_since;
                                 return since == Clock::time_point() ? 0. : std::chrono::duration<double>(Clock::now() - since).count();
                               });
    routes.push_back(std::move(route));
  }
  thread = std::thread([this] { run(); });
}

void HttpRoutes::State::run() {
  while (sleeper.wait(kRoundEvery)) {
    const bool lead = leads();
    for (const auto& route : routes) {
      if (ending) return;
      if (lead) {
        look(*route);
      } else {
        forget(*route);
      }
    }
  }
}

/// Another router leads, and speaks of the route.
void HttpRoutes::State::forget(Route& route) {
  route.seen.reset();
  route.behind_since = Clock::time_point();
  if (!std::exchange(route.trouble, "").empty())
    controller.services().all[route.index]->let_advance(false, controller.split(route.index), "");
}

/// One that is cut off from the shared store leads until another can: its weights only fall meanwhile.
bool HttpRoutes::State::leads() const {
  const auto replicas = controller.replicas();
  return !replicas || (replicas->leads && (replicas->reachable || replicas->behind_seconds < kLeadsFor));
}

std::vector<BackendShare> HttpRoutes::State::shares_of(const Route& route) const {
  std::vector<BackendShare> shares;
  shares.reserve(route.service->versions.size());
  for (size_t version = 0; version < route.service->versions.size(); ++version)
    shares.push_back({route.service->http_route->backends[version], controller.share_of(route.index, version)});
  return shares;
}

void HttpRoutes::State::look(Route& route) {
  const auto now = Clock::now();
  const Split split = controller.split(route.index);
  const std::vector<BackendShare> shares = shares_of(route);
  if (controller.split(route.index) != split) return sleeper.wake();  // not the shares of one moment
  const bool news = !std::ranges::equal(shares, route.tried, {}, &BackendShare::ppm, &BackendShare::ppm);
  if (!news && now < route.next_attempt) return;
  const bool settled = route.seen && now < route.read_at + kReadEvery && route.trouble.empty();
  if (settled && !news) return controller.services().all[route.index]->let_advance(true, split, "");
  if (news && route.behind_since.load() == Clock::time_point()) route.behind_since = now;
  route.tried = shares;
  const Status done = bring(route, shares);
  if (ending) return;
  if (done) route.backoff.reset();
  route.next_attempt = done ? now : Clock::now() + route.backoff.next(api.asked_to_wait());
  tell(route, split, done);
}

/// Until the route has these weights. What was read before is believed first: a fall is one request.
Status HttpRoutes::State::bring(Route& route, const std::vector<BackendShare>& shares) {
  bool fresh = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!route.seen || Clock::now() >= route.read_at + kReadEvery) {
      auto read = api.get(route.path);
      if (!read) return read.error();
      route.seen = *std::move(read);
      route.read_at = Clock::now();
      fresh = true;
    }
    auto patch = weight_patch(*route.seen, shares);
    if (!patch && !fresh) {
      route.seen.reset();
      continue;
    }
    if (!patch) return patch.error();
    if (patch->empty()) return {};
    if (route.behind_since.load() == Clock::time_point()) route.behind_since = Clock::now();
    auto written = api.patch(route.path, *patch);
    if (written) {
      route.written->add();
      route.seen = *std::move(written);
      route.read_at = Clock::now();
      return {};
    }
    route.seen.reset();  // it is not known whether that was done
    if (written.error().code != Code::kConflict) return written.error();
  }
  return Error{Code::kUnavailable, "somebody else changes it all the time"};
}

void HttpRoutes::State::tell(Route& route, const Split& split, const Status& done) {
  const std::string wrong = done ? "" : fmt::format("HTTPRoute '{}': {}", route.name, done.error().message);
  if (!done) route.refused->add();
  if (done)
    route.behind_since = Clock::time_point();
  else if (route.behind_since.load() == Clock::time_point())
    route.behind_since = Clock::now();
  const std::string before = std::exchange(route.trouble, wrong);
  controller.services().all[route.index]->let_advance(done.has_value(), split, wrong);
  if (before == wrong) return;
  if (wrong.empty())
    log::info("service '{}': HTTPRoute '{}' has the weights again", route.service->name, route.name);
  else
    log::error("service '{}': {}; it keeps its last weights until they can be written", route.service->name, wrong);
}

HttpRoutes::HttpRoutes(const kubernetes::Cluster& cluster, const RouterConfig& config, Controller& controller, metrics::Registry& metrics)
    : state_(std::make_unique<State>(cluster, config, controller, metrics)) {}
HttpRoutes::~HttpRoutes() = default;

void HttpRoutes::end() { state_->end(); }
void HttpRoutes::wake() { state_->sleeper.wake(); }

}  // namespace serin::router
