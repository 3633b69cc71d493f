#include "runtime/cli/serve/serve_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/net/grpc_server.h"
#include "runtime/serving/apis/http_answers.h"

namespace serin::cli {
namespace {

using serving::Access;

net::Response metrics_page(const metrics::Registry& registry) {
  net::Response response;
  response.headers.set("Content-Type", metrics::Registry::kContentType);
  response.body = registry.render();
  return response;
}

const std::string& or_else(const std::string& text, const std::string& otherwise) { return text.empty() ? otherwise : text; }

/// The page at its paths, for whom `access` lets in where it is not null; everything else to `others`.
net::Handler with_metrics(const metrics::Registry& registry, std::vector<std::string> paths, Access* access, net::Handler others) {
  return [&registry, paths = std::move(paths), access, others = std::move(others)](net::Request request, net::Responder responder) {
    if (std::ranges::find(paths, request.path) == paths.end()) return others(std::move(request), std::move(responder));
    if (access) {
      const auto why_not = access->refuse(serving::Right::kRead, Access::Port::kData, request.headers, request.certificate.get());
      if (why_not) return responder.send(serving::refusal_response(*why_not));
    }
    responder.send(metrics_page(registry));
  };
}

/// Tells who looks for the page at the port of clients where it is: people read the words, a router the header.
net::Handler with_pointer(uint16_t metrics_port, net::Handler others) {
  return [metrics_port, others = std::move(others)](net::Request request, net::Responder responder) {
    if (request.path != "/metrics" || request.method != "GET") return others(std::move(request), std::move(responder));
    net::Response pointer = net::json_error(404, fmt::format("Not Found; metrics are at port {}", metrics_port));
    pointer.headers.set("x-serin-metrics-port", std::to_string(metrics_port));
    responder.send(std::move(pointer));
  };
}

}  // namespace

Result<std::unique_ptr<ServePorts>> ServePorts::open(const ServeOptions& options, const ServeLimits& limits,
                                                     std::shared_ptr<const net::TlsContext> tls, net::Loops& loops,
                                                     serving::Frontend& frontend, serving::Access& access, metrics::Registry& registry) {
  std::unique_ptr<ServePorts> ports(new ServePorts(frontend, access));
  const auto listening = [&](const char* name, const std::string& address, uint16_t port, const ServeLimits::Port& most) {
    net::ServerOptions made{.name = name,
                            .address = address,
                            .port = port,
                            .body_bytes_from = most.from,
                            .large_bodies = limits.bodies,
                            .tls = tls,
                            .metrics = &registry};
    made.limits.body_bytes = most.body_bytes;
    const bool as_triton = options.dialect == serving::Dialect::kTriton;
    made.on_refusal = [&host = frontend.host, as_triton](net::Response& refusal) {
      refusal.headers.set("x-serin-batch", protocol::print_batch_tag(host.lone_tag()));
      if (as_triton) serving::use_triton_status(refusal);
    };
    if (as_triton) made.on_answer = serving::use_triton_status;
    return made;
  };
  if (options.metrics_port) {  // before the others, which say where it is
    const auto unknown = [](const net::Request&, net::Responder responder) {
      responder.send(net::json_error(404, "Not Found; try /metrics"));
    };
    SERIN_TRY(ports->metrics_,
              net::Server::start(
                  loops, {.name = "metrics", .address = or_else(options.metrics_address, options.address), .port = *options.metrics_port},
                  with_metrics(registry, {"/metrics"}, nullptr, unknown)));
    frontend.metrics_at = fmt::format("port {}", ports->metrics_->port());
  } else if (!options.metrics_paths.empty()) {
    frontend.metrics_at = options.metrics_paths.front();
  }
  if (options.port) {
    net::Handler handler = ports->http_api_.at(Access::Port::kData);
    if (!options.metrics_paths.empty()) handler = with_metrics(registry, options.metrics_paths, &access, std::move(handler));
    if (ports->metrics_ && options.dialect == serving::Dialect::kSerin) handler = with_pointer(ports->metrics_->port(), std::move(handler));
    net::ServerOptions http = listening("http", options.address, *options.port, limits.http);
    if (options.tls_for_grpc_only) http.tls = nullptr;
    SERIN_TRY(ports->http_, net::Server::start(loops, std::move(http), std::move(handler)));
  }
  if (options.grpc_port) {
    const auto method = [&api = ports->grpc_api_](std::string_view path) { return api.method(path); };
    const auto gate = [&access](std::string_view path, bool known, const net::Headers& headers,
                                const net::PeerCertificate* certificate) -> std::optional<net::GrpcRefusal> {
      auto refusal = access.refuse_grpc(path, known, headers, certificate);
      if (!refusal) return std::nullopt;
      return net::GrpcRefusal{refusal->status, std::move(refusal->message)};
    };
    net::ServerOptions grpc = listening("grpc", or_else(options.grpc_address, options.address), *options.grpc_port, limits.grpc);
    grpc.connection_age = options.grpc_age;
    grpc.connection_age_grace = options.grpc_age_grace;
    SERIN_TRY(ports->grpc_, net::start_grpc_server(loops, std::move(grpc), method, gate));
  }
  if (options.admin_port) {
    SERIN_TRY(ports->admin_, net::Server::start(loops, listening("admin", "127.0.0.1", *options.admin_port, limits.admin),
                                                ports->http_api_.at(Access::Port::kAdmin)));
  }
  return ports;
}

Ports ServePorts::numbers() const {
  const auto number = [](const auto& server) { return server ? std::optional(server->port()) : std::nullopt; };
  return {.http = number(http_), .grpc = number(grpc_), .metrics = number(metrics_), .admin = number(admin_)};
}

bool ServePorts::drain(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool all = true;
  for (const auto* server : {&http_, &grpc_, &admin_}) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (*server && !(*server)->drain(left)) all = false;
  }
  return all;
}

}  // namespace serin::cli
