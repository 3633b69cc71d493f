// admin_api.h: The router's REST API, on its own port (router/admin/REFERENCE.md has the table).
//
//   SERIN_TRY(const auto access, Access::open(config.admin, registry));
//   AdminApi api(config, controller, outcomes, *access, audit, registry);
//   net::Server::start(admin_loops, {...}, [&](net::Request r, net::Responder to) { to.send(api.answer(r)); });
//
// A change is on disk when its answer is sent: give the API its own io thread, never one of the data path.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "router/admin/access.h"
#include "router/admin/event_feed.h"
#include "router/admin/gates.h"
#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/notify/audit_stream.h"
#include "router/outcomes/outcomes.h"
#include "runtime/base/metrics.h"
#include "runtime/net/http.h"

namespace serin::router {

/// Thread-safe except for events, which belong to one io thread: requests for them are answered there.
class AdminApi {
 public:
  AdminApi(const RouterConfig& config, Controller& controller, Outcomes& outcomes, Access& access, const AuditStream& audit,
           metrics::Registry& metrics);

  /// A refused change goes to `audit`; an accepted one gets there through the controller.
  net::Response answer(const net::Request& request);
  /// /health/ready answers 503 from now on.
  void stop_being_ready() { ready_.store(false); }
  /// Ends the endless answers, the event streams. Call on their io thread.
  void close() { events_.close(); }

 private:
  net::Response health(const net::Request& request) const;
  void tell_refusal(const net::Request& request, const Caller& caller, const net::Response& response) const;
  net::Response route(const net::Request& request, const Caller& caller);
  net::Response apply_rollout(const std::string& service, const net::Request& request, const Caller& caller);
  net::Response start_rollout(const net::Request& request, const Caller& caller);
  std::optional<net::Response> at_leader(const net::Request& request) const;
  net::Response command(const std::string& service, const std::string& verb, const net::Request& request, const Caller& caller);
  net::Response list_rollouts() const;
  net::Response list_services() const;
  Result<Standing> standing(const std::string& service, const net::Request& request) const;
  net::Response verdict(const std::string& service, const net::Request& request) const;
  net::Response gate(const std::string& service, const std::string& type, const net::Request& request) const;
  net::Response timeline(const std::string& service) const;
  net::Response outcomes(const std::string& service, const net::Request& request, const Caller& caller);
  net::Response report_outcomes(const std::string& service, const net::Request& request, const Caller& caller);
  net::Response report_outcomes(const net::Request& request, const Caller& caller);
  net::Response events(std::optional<std::string_view> service, const net::Request& request);
  net::Response history(const std::string& service, const net::Request& request) const;
  Result<ServiceStatus> run_command(const std::string& service, const std::string& verb, const net::Request& request, const Caller& caller);
  Result<rollout::Spec> read_spec(const net::Request& request) const;

  const RouterConfig& config_;
  Controller& controller_;
  Outcomes& outcomes_;
  Access& access_;
  const AuditStream& audit_;
  metrics::Registry& metrics_;
  const bool on_loopback_;
  std::atomic<bool> ready_{true};
  EventFeed events_;
};

}  // namespace serin::router
