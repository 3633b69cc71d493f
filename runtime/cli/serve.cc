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
#include "runtime/cli/serve_ports.h"
#include "runtime/net/tls_watch.h"

namespace serin::cli {
namespace {

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

/// What models run on, and how those do whose serin.yaml does not say.
struct Compute {
  kernels::CpuOptions cpu;
  serving::Precision precision = serving::Precision::kFp32;
  engine::DeviceChoice device;
  bool on_cpu() const { return device.kind == engine::DeviceChoice::Kind::kCpu; }
};
Result<Compute> read_compute(const ServeOptions& options) {
  Compute compute;
  SERIN_TRY(compute.cpu, cpu_options(options.isa));
  const auto precision = serving::parse_precision(options.precision);
  if (!precision)
    return Error{Code::kInvalidArgument, fmt::format("--precision {}: must be auto, fp32, tf32, fp16, bf16 or int8", options.precision)};
  const auto device = engine::parse_device(options.device);
  if (!device) return Error{Code::kInvalidArgument, fmt::format("--device {}: must be cpu, cuda, cuda:N or auto", options.device)};
  compute.precision = *precision;
  compute.device = *device;
  return compute;
}

std::string describe(const Ports& ports, const ServeOptions& options) {
  std::string text;
  const auto add = [&](std::string_view what, std::optional<uint16_t> port) {
    if (port) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *port);
  };
  add(options.tls_cert.empty() ? "http" : "https", ports.http);
  add("gRPC", ports.grpc);
  add("metrics", ports.metrics);
  add("admin", ports.admin);
  return fmt::format("{} ({})", options.address, text);
}

/// Readiness goes first, so that load balancers look elsewhere while requests are still served.
void end(serving::Frontend& frontend, ServePorts& ports, double drain_seconds) {
  frontend.set_ready(false);
  log::info("ending: not ready any more; requests are served for another {} s", drain_seconds);
  wait_for_end_signal(drain_seconds);
  const bool drained = ports.drain(std::chrono::seconds(30));
  log::info("ended{}", drained ? "" : ": some requests were still under way after 30 s");
}

Result<int> serve(const ServeOptions& options) {
  SERIN_CHECK(configure_log(options.log_format, options.log_level));
  SERIN_TRY(const Compute compute, read_compute(options));
  SERIN_TRY(const std::shared_ptr<net::TlsContext> tls, server_tls(options));
  block_end_signals();
  block_signal(SIGHUP);
  raise_descriptor_limit();

  std::string note;
  const auto backend = kernels::make_cpu_backend(compute.cpu, &note);
  const auto bf16_backend = make_bf16_backend(compute.cpu);
  if (compute.on_cpu() && compute.precision == serving::Precision::kBf16 && !bf16_backend)
    return Error{Code::kInvalidArgument, "--precision bf16: this machine, or the instruction set, does not multiply bf16"};
  const int cores = options.threads > 0 ? options.threads : serving::granted_cores();
  log::info("serin {}: {}; {} compute threads", SERIN_VERSION, note, cores);

  // Declared in the order in which they may be needed by what comes after: destruction runs the other way.
  metrics::Registry registry;
  engine::Devices devices(options.cuda_plugin, registry);
  if (const auto found = devices.choose(compute.device); !found)
    return found.error().in("--device " + options.device);
  else if (!compute.on_cpu())
    log::info("device {}: {}", options.device, found->why);
  net::Loops loops(static_cast<size_t>(options.io_threads));
  serving::Host host{.backend = *backend,
                     .bf16_backend = bf16_backend.get(),
                     .devices = &devices,
                     .metrics = registry,
                     .defaults = {.precision = compute.precision, .device = compute.device},
                     .boot = std::random_device{}() | uint64_t{std::random_device{}()} << 32,
                     .pool = serving::ComputePool(cores)};
  const auto poll = std::chrono::milliseconds(static_cast<int64_t>(options.poll_seconds * 1000));
  SERIN_TRY(const auto repository, serving::Repository::open({.roots = {{options.models}}, .poll = poll}, host));
  SERIN_TRY(const auto access, serving::Access::open({options.tokens, options.admin_on_data_port}, registry));
  serving::Frontend frontend(loops, *repository, host);
  SERIN_TRY(const auto ports, ServePorts::open(options, tls, loops, frontend, *access, registry));
  net::TlsWatch certificates({tls}, registry);

  repository->load();  // alive meanwhile, for a large repository must not fail its liveness probe
  frontend.set_ready(true);
  SERIN_CHECK(write_ready_file(options.ready_file, ports->numbers()));
  log::info("serving {} at {}", options.models, describe(ports->numbers(), options));

  wait_for_end_signal([&] { certificates.refresh(); });
  end(frontend, *ports, options.drain_seconds);
  return repository->catalogue().get()->usable() ? kYes : kNo;  // a supervisor that looks at exit codes only learns it, too
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const auto code = serve(options);
  if (code) return *code;
  std::fprintf(stderr, "serin serve: %s\n", code.error().message.c_str());
  return kUsage;
}

}  // namespace serin::cli
