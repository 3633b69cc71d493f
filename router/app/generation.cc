// generation.cc: builds a generation, and takes it apart in steps. After each step there is still a process that routes.

#include "router/app/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "router/config/config_kubernetes.h"
#include "router/config/config_store.h"
#include "router/config/config_tls.h"
#include "router/config/endpoint_list.h"
#include "runtime/base/log.h"
#include "runtime/net/grpc_server.h"

namespace serin::router {
namespace {

constexpr size_t kLargestAdminBody = 1 << 20, kLargestQuestion = 64 << 10;
constexpr size_t kMostTriggers = 1000;  // of KEDA, whose streams share a connection
constexpr std::chrono::seconds kSettle{3}, kAdminDrain{2};

std::string url_of(const Listen& listen, uint16_t port, bool secure) {
  const bool v6 = listen.address.find(':') != std::string::npos;
  return fmt::format("http{}://{}{}{}:{}", secure ? "s" : "", v6 ? "[" : "", listen.address, v6 ? "]" : "", port);
}

bool has_slices(const RouterConfig& config) {
  return std::ranges::any_of(config.services, [](const ServiceConfig& service) {
    return std::ranges::any_of(service.versions, [](const VersionConfig& version) { return version.source.slices.has_value(); });
  });
}

/// An inherited socket only where it is at the address that is asked for.
net::ServerOptions server_options(std::string name, const Listen& listen, std::shared_ptr<const net::TlsContext> tls,
                                  const net::Limits& limits, bool http2, metrics::Registry& registry, Descriptor& inherited) {
  return {.name = std::move(name),
          .address = listen.address,
          .port = listen.port,
          .listening = is_bound_to(inherited, listen.address, listen.port) ? inherited.release() : -1,
          .limits = limits,
          .tls = std::move(tls),
          .http2 = http2,
          .encoded_bodies = true,
          .metrics = &registry};
}

}  // namespace

Result<std::unique_ptr<Generation>> Generation::start(const RouterConfig& config, RouterLoops& loops, ListeningSockets inherited,
                                                      LearnedServices* learned) {
  std::unique_ptr<Generation> generation(new Generation(config, loops));
  const Status opened = generation->open(std::move(inherited), learned);
  if (opened) return generation;
  if (learned != nullptr && generation->steering_) {
    generation->close_for_autoscalers();
    if (generation->admin_server_) {  // it may have requests already
      generation->drain_admin(kAdminDrain);
      generation->admin_server_.reset();
    }
    generation->outcomes_.reset();
    generation->steering_->retire();
    *learned = generation->steering_->controller().take_learned();
  }
  return opened.error();
}

Status Generation::open(ListeningSockets inherited, LearnedServices* learned) {
  auto access = Access::open(config_.admin, registry_);
  if (!access) return access.error().in("admin");
  access_ = *std::move(access);
  certificates_ = std::make_unique<net::TlsWatch>(tls_contexts(config_), registry_);
  SERIN_TRY(steering_, Steering::open(config_, registry_, &audit_, learned));
  Controller& controller = steering_->controller();
  outcomes_ = std::make_unique<Outcomes>(config_.services, controller.store(), registry_, loops_.predictions, steering_->outcome_watch());
  if (has_slices(config_)) {
    SERIN_TRY(kubernetes::Cluster cluster, cluster_of(config_.kubernetes));
    slices_ = std::make_unique<kubernetes::SliceWatch>(
        std::move(cluster), kubernetes::SliceWatch::Options{.zone = zone_of(config_.kubernetes), .taints = config_.kubernetes.node_taints},
        kMostEndpoints);
  }
  proxy_ = std::make_unique<Proxy>(config_, controller, loops_.data, loops_.recorders, loops_.predictions, registry_, slices_.get());
  if (slices_) slices_->begin();
  admin_ = std::make_unique<AdminApi>(config_, controller, *outcomes_, *access_, audit_, registry_);
  if (inherited.data.open()) {
    const auto until = std::chrono::steady_clock::now() + kSettle;
    while (!proxy_->is_settled() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  net::Limits limits;
  limits.body_bytes = kLargestAdminBody;
  auto admin = net::Server::start(
      loops_.admin, server_options("admin", config_.admin.listen, config_.admin.tls, limits, /*http2=*/false, registry_, inherited.admin),
      [this](const net::Request& request, net::Responder responder) { responder.send(admin_->answer(request)); });
  if (!admin) return admin.error().in("admin");
  admin_server_ = *std::move(admin);
  admin_port_ = admin_server_->port();
  SERIN_CHECK(open_for_autoscalers());
  auto data = net::Server::start_streaming(
      loops_.data, server_options("data", config_.listen, config_.tls, config_.limits, /*http2=*/true, registry_, inherited.data),
      proxy_->handlers());
  if (!data) return data.error().in("listen");
  data_server_ = *std::move(data);
  // Another router sends clients there: the pod's own address where this one listens at all of them.
  Listen reached = config_.admin.listen;
  if (config_.replicas)
    if (const auto address = reachable_address(reached)) reached.address = *address;
  steering_->advertise(url_of(reached, admin_port_, config_.admin.tls != nullptr));
  return {};
}

/// Between two generations nobody listens there for a moment. An autoscaler that gets no answer changes nothing.
Status Generation::open_for_autoscalers() {
  if (!config_.external_metrics && !config_.external_scaler) return {};
  own_load_ = proxy_->load_source();
  steering_->share_load(own_load_);
  Descriptor none;
  if (const auto& asked = config_.external_metrics) {
    external_metrics_ = std::make_unique<ExternalMetrics>([this] { return loads(); });
    auto server = net::Server::start(
        loops_.admin, server_options("external_metrics", asked->listen, asked->tls, {}, /*http2=*/false, registry_, none),
        [this](const net::Request& request, net::Responder responder) { responder.send(external_metrics_->answer(request)); });
    if (!server) return server.error().in("external_metrics");
    external_metrics_server_ = *std::move(server);
  }
  if (const auto& asked = config_.external_scaler) {
    external_scaler_ = std::make_unique<ExternalScaler>([this] { return loads(); });
    net::Limits limits;
    limits.body_bytes = kLargestQuestion;
    limits.streams = kMostTriggers;
    auto server = net::start_grpc_server(
        loops_.admin, server_options("external_scaler", asked->listen, asked->tls, limits, /*http2=*/true, registry_, none),
        [this](std::string_view path) { return external_scaler_->method(path); });
    if (!server) return server.error().in("external_scaler");
    external_scaler_server_ = *std::move(server);
  }
  return {};
}

void Generation::close_for_autoscalers() {
  for (auto* server : {&external_metrics_server_, &external_scaler_server_}) {
    if (*server) (void)(*server)->drain(kAdminDrain);
    server->reset();
  }
}

/// Of all routers. What a rollout under way compares stays, however few requests it gets, and so does what traffic may go back to. That version
/// must be able to take all of it at once, so the load of the other one counts as its own, too.
std::vector<VersionLoad> Generation::loads() const {
  const std::vector<VersionLoad> measured = steering_->whole_load(own_load_());
  std::vector<VersionLoad> loads = measured;
  const Controller& controller = steering_->controller();
  for (size_t i = 0; i < config_.services.size(); ++i) {
    const ServiceConfig& service = config_.services[i];
    const auto first = std::ranges::find(config_.services, service_of(service.name), &ServiceConfig::name);
    const uint32_t stable = controller.split(static_cast<size_t>(first - config_.services.begin())).stable;
    const uint32_t canary = controller.split(i).canary;
    const bool compares = canary != Split::kNoCanary && canary != stable;
    const std::string warm = compares ? "" : controller.services().all[i]->warm_elsewhere(std::chrono::steady_clock::now());
    if (!compares && warm.empty()) continue;
    const bool under_way = compares && !controller.services().all[i]->running_spec().first.empty();
    const std::string baseline = controller.spec(i)->baseline, other = compares ? service.versions[canary].name : warm;
    const std::string &goes_back_to = under_way ? service.versions[stable].name : other,
                      &comes_from = under_way ? other : service.versions[stable].name;
    const auto from =
        std::ranges::find_if(measured, [&](const VersionLoad& load) { return load.service == first->name && load.version == comes_from; });
    for (VersionLoad& load : loads) {
      if (load.service != first->name) continue;
      const std::string& version = load.version;
      load.needed = load.needed || version == service.versions[stable].name || version == other || version == baseline;
      if (version != goes_back_to || from == measured.end()) continue;
      load.in_flight += from->in_flight;
      load.requests_per_second += from->requests_per_second;
    }
  }
  return loads;
}

std::string Generation::data_url() const { return url_of(config_.listen, data_port(), config_.tls != nullptr); }
std::string Generation::admin_url() const { return url_of(config_.admin.listen, admin_port_, config_.admin.tls != nullptr); }

ListeningSockets Generation::sockets() const {
  return {Descriptor::duplicate(data_server_->listening()),
          admin_server_ ? Descriptor::duplicate(admin_server_->listening()) : Descriptor::duplicate(admin_socket_.get())};
}

void Generation::stop_being_ready() {
  proxy_->stop_being_ready();
  admin_->stop_being_ready();
}

LearnedServices Generation::hand_over_store() {
  if (!admin_server_) return {};
  close_for_autoscalers();
  admin_socket_ = Descriptor::duplicate(admin_server_->listening());
  drain_admin(kAdminDrain);
  admin_server_.reset();
  outcomes_->stop();
  steering_->controller().stop_learning();
  for (size_t i = 0; i < loops_.data.size(); ++i) loops_.data.post_and_wait(i, [] {});  // who was learning has done so
  steering_->retire();
  return steering_->controller().take_learned();
}

bool Generation::drain(std::chrono::milliseconds deadline) {
  const bool drained = data_server_->drain(deadline);
  if (admin_server_) drain_admin(deadline);
  close_for_autoscalers();
  return drained;
}

/// Answers that tell events would never end by themselves.
void Generation::drain_admin(std::chrono::milliseconds deadline) {
  loops_.admin.post_and_wait(0, [this] { admin_->close(); });
  (void)admin_server_->drain(deadline);
}

}  // namespace serin::router
