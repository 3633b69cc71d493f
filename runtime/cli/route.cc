// route.cc: `serin route`: puts the router together and waits for the end.
//
// The admin API has an io thread of its own: its answers wait for the disk, and the data path must not. On SIGTERM readiness turns 503 at once,
// on both ports; requests go on being routed for the drain time (or until a second signal), what is then under way is answered, exit 0. Rollouts
// go on where they are at the next start.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "router/admin/admin_api.h"
#include "router/proxy/proxy.h"
#include "runtime/base/log.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/net/server.h"

namespace serin::cli {
namespace {

constexpr std::chrono::seconds kLongestDrain{30};
constexpr size_t kLargestAdminBody = 1 << 20;

int usage(const Error& error) {
  std::fprintf(stderr, "serin route: %s\n", error.message.c_str());
  return kUsage;
}

std::string url_of(const router::Listen& listen, uint16_t port) {
  const bool v6 = listen.address.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", v6 ? "[" : "", listen.address, v6 ? "]" : "", port);
}

net::ServerOptions server_options(std::string name, const router::Listen& listen, const net::Limits& limits, bool http2,
                                  metrics::Registry& registry) {
  return {.name = std::move(name),
          .address = listen.address,
          .port = listen.port,
          .limits = limits,
          .http2 = http2,
          .encoded_bodies = true,
          .metrics = &registry};
}

}  // namespace

int run_route(const RouteOptions& options) {
  if (auto status = configure_log(options.log_format, options.log_level); !status) return usage(status.error());
  const auto config = router::load_config(options.config);
  if (!config) return usage(config.error());
  metrics::Registry registry;
  const auto access = router::Access::open(config->admin, registry);
  if (!access) return usage(access.error().in("admin"));
  if (options.check) {
    std::printf("%s: %zu services, nothing to complain about\n", options.config.c_str(), config->services.size());
    return kYes;
  }
  block_end_signals();
  raise_descriptor_limit();

  // Declared in the order in which they may be needed by what comes after: destruction runs the other way.
  router::AuditStream audit(STDOUT_FILENO);
  auto controller = router::Controller::open(*config, registry, &audit);
  if (!controller) return usage(controller.error());
  net::Loops loops(static_cast<size_t>(config->io_threads));
  net::Loops admin_loop(1);
  router::Proxy proxy(*config, **controller, loops, registry);
  router::AdminApi admin(*config, **controller, **access, audit, registry);

  auto data_server = net::Server::start_streaming(loops, server_options("data", config->listen, config->limits, /*http2=*/true, registry),
                                                  proxy.handlers());
  if (!data_server) return usage(data_server.error().in("listen"));
  net::Limits admin_limits;
  admin_limits.body_bytes = kLargestAdminBody;
  auto admin_server =
      net::Server::start(admin_loop, server_options("admin", config->admin.listen, admin_limits, /*http2=*/false, registry),
                         [&admin](const net::Request& request, net::Responder responder) { responder.send(admin.answer(request)); });
  if (!admin_server) return usage(admin_server.error().in("admin"));

  if (auto written = write_ready_file(options.ready_file, {.http = (*data_server)->port(), .admin = (*admin_server)->port()}); !written)
    return usage(written.error());
  log::info("routing at {}; admin API and metrics at {}", url_of(config->listen, (*data_server)->port()),
            url_of(config->admin.listen, (*admin_server)->port()));

  wait_for_end_signal();
  proxy.stop_being_ready();
  admin.stop_being_ready();
  log::info("ending: not ready any more; requests are routed for another {} s", options.drain_seconds);
  wait_for_end_signal(options.drain_seconds);
  const bool drained = (*data_server)->drain(kLongestDrain);
  admin_loop.post_and_wait(0, [&admin] { admin.close(); });
  (void)(*admin_server)->drain(kLongestDrain);
  log::info("ended{}", drained ? "" : ": some requests were still under way after 30 s");
  return kYes;
}

}  // namespace serin::cli
