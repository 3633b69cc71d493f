// serve.cc: `serin serve`: puts the runtime together and waits for the end.
//
// On SIGHUP files of certificates are read again, which happens within seconds without it, too. On SIGTERM: readiness turns 503 at once, so that load
// balancers look elsewhere, while requests go on being served for the drain time (or until a second signal); then the sockets close, what is under
// way is answered, exit 0.

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <random>

#include "runtime/base/log.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/tls_watch.h"
#include "runtime/serving/grpc_api.h"
#include "runtime/serving/http_api.h"

namespace serin::cli {
namespace {

int usage(const Error& error) {
  std::fprintf(stderr, "serin serve: %s\n", error.message.c_str());
  return kUsage;
}

Result<kernels::CpuOptions> cpu_options(const std::string& isa) {
  kernels::CpuOptions options;
  if (isa.empty()) return options;
  for (const kernels::Isa candidate : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (isa != kernels::isa_name(candidate)) continue;
    if (candidate > kernels::best_isa())
      return Error{Code::kInvalidArgument,
                   fmt::format("--isa {}: this machine has {} at most", isa, kernels::isa_name(kernels::best_isa()))};
    options.isa = candidate;
    return options;
  }
  return Error{Code::kInvalidArgument, fmt::format("--isa {}: must be scalar, avx2 or avx512", isa)};
}

/// Null where the machine, or the instruction set that was asked for, does not multiply bf16.
std::unique_ptr<kernels::Backend> make_bf16_backend(kernels::CpuOptions options) {
  if (!kernels::multiplies_bf16() || options.isa != kernels::Isa::kAvx512) return nullptr;
  options.bf16 = true;
  return kernels::make_cpu_backend(options);
}

/// Null: in the clear.
Result<std::shared_ptr<net::TlsContext>> server_tls(const ServeOptions& options) {
  if (options.tls_cert.empty()) return nullptr;
  auto made = net::TlsContext::for_server({.certificate = options.tls_cert,
                                           .key = options.tls_key,
                                           .client_ca = options.tls_client_ca,
                                           .least = options.tls_min_version == "1.2" ? net::TlsVersion::k12 : net::TlsVersion::k13});
  if (!made) return made.error().in("TLS");
  return made;
}

void metrics_page(const metrics::Registry& registry, const net::Request& request, net::Responder responder) {
  if (request.path != "/metrics") return responder.send(net::json_error(404, "Not Found; try /metrics"));
  net::Response response;
  response.headers.set("Content-Type", metrics::Registry::kContentType);
  response.body = registry.render();
  responder.send(std::move(response));
}

}  // namespace

int run_serve(const ServeOptions& options) {
  if (auto status = configure_log(options.log_format, options.log_level); !status) return usage(status.error());
  const auto cpu = cpu_options(options.isa);
  if (!cpu) return usage(cpu.error());
  const auto tls = server_tls(options);
  if (!tls) return usage(tls.error());
  block_end_signals();
  block_signal(SIGHUP);
  raise_descriptor_limit();

  std::string note;
  const auto precision = serving::parse_precision(options.precision);
  if (!precision)
    return usage({Code::kInvalidArgument, fmt::format("--precision {}: must be auto, fp32, tf32, fp16, bf16 or int8", options.precision)});
  const auto device = engine::parse_device(options.device);
  if (!device) return usage({Code::kInvalidArgument, fmt::format("--device {}: must be cpu, cuda, cuda:N or auto", options.device)});
  const auto backend = kernels::make_cpu_backend(*cpu, &note);
  const auto bf16_backend = make_bf16_backend(*cpu);
  const bool on_cpu = device->kind == engine::DeviceChoice::Kind::kCpu;
  if (on_cpu && *precision == serving::Precision::kBf16 && !bf16_backend)
    return usage({Code::kInvalidArgument, "--precision bf16: this machine, or the instruction set, does not multiply bf16"});
  const int cores = options.threads > 0 ? options.threads : serving::granted_cores();
  log::info("serin {}: {}; {} compute threads", SERIN_VERSION, note, cores);

  // Declared in the order in which they may be needed by what comes after: destruction runs the other way.
  metrics::Registry registry;
  engine::Devices devices(options.cuda_plugin, registry);
  if (const auto found = devices.choose(*device); !found)
    return usage(found.error().in("--device " + options.device));
  else if (!on_cpu)
    log::info("device {}: {}", options.device, found->why);
  net::Loops loops(static_cast<size_t>(options.io_threads));
  serving::Host host{.backend = *backend,
                     .bf16_backend = bf16_backend.get(),
                     .devices = &devices,
                     .metrics = registry,
                     .defaults = {.precision = *precision, .device = *device},
                     .boot = std::random_device{}() | uint64_t{std::random_device{}()} << 32,
                     .pool = serving::ComputePool(cores)};
  auto repository =
      serving::Repository::open(options.models, std::chrono::milliseconds(static_cast<int64_t>(options.poll_seconds * 1000)), host);
  if (!repository) return usage(repository.error());

  serving::Frontend frontend(loops, **repository, host);
  serving::HttpApi http_api(frontend);
  serving::GrpcApi grpc(frontend);
  net::ServerOptions http_options{.name = "http", .address = options.address, .port = options.port, .tls = *tls, .metrics = &registry};
  http_options.limits.body_bytes = static_cast<size_t>(options.max_body_bytes);
  http_options.on_refusal = [&host](net::Response& refusal) {
    refusal.headers.set("x-serin-batch", protocol::print_batch_tag(host.lone_tag()));
  };
  auto http = net::Server::start(loops, http_options, [&http_api](net::Request request, net::Responder responder) {
    http_api.handle(std::move(request), std::move(responder));
  });
  if (!http) return usage(http.error());
  net::ServerOptions grpc_options{.name = "grpc", .address = options.address, .port = options.grpc_port, .tls = *tls, .metrics = &registry};
  grpc_options.limits.body_bytes = static_cast<size_t>(options.max_body_bytes);
  auto grpc_server = net::start_grpc_server(loops, grpc_options, [&grpc](std::string_view path) { return grpc.method(path); });
  if (!grpc_server) return usage(grpc_server.error());
  auto metrics_server = net::Server::start(
      loops, {.name = "metrics", .address = options.address, .port = options.metrics_port},
      [&registry](const net::Request& request, net::Responder responder) { metrics_page(registry, request, std::move(responder)); });
  if (!metrics_server) return usage(metrics_server.error());
  net::TlsWatch certificates({*tls}, registry);

  (*repository)->load();  // alive meanwhile, for a large repository must not fail its liveness probe
  frontend.set_ready(true);
  if (auto written = write_ready_file(options.ready_file,
                                      {.http = (*http)->port(), .grpc = (*grpc_server)->port(), .metrics = (*metrics_server)->port()});
      !written)
    return usage(written.error());
  log::info("serving {} at http{}://{}:{} (gRPC on port {}, metrics on port {})", options.models, *tls ? "s" : "", options.address,
            (*http)->port(), (*grpc_server)->port(), (*metrics_server)->port());

  wait_for_end_signal([&] { certificates.refresh(); });
  frontend.set_ready(false);
  log::info("ending: not ready any more; requests are served for another {} s", options.drain_seconds);
  wait_for_end_signal(options.drain_seconds);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto left = [deadline] { return std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()); };
  const bool http_drained = (*http)->drain(left()), grpc_drained = (*grpc_server)->drain(left());
  log::info("ended{}", http_drained && grpc_drained ? "" : ": some requests were still under way after 30 s");
  return (*repository)->catalogue().get()->usable() ? kYes : kNo;  // a supervisor that looks at exit codes only learns it, too
}

}  // namespace serin::cli
