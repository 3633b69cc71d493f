// serve.cc: `serin serve`: puts the runtime together and waits for the end.
//
// On SIGHUP files of certificates are read again, which happens within seconds without it, too. On SIGTERM: readiness turns 503 at once, so that load
// balancers look elsewhere, while requests go on being served for the drain time (or until a second signal); then the sockets close, what is under
// way is answered, exit 0.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "runtime/base/log.h"
#include "runtime/base/process_metrics.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/serve/freed_memory.h"
#include "runtime/cli/serve/lost_devices.h"
#include "runtime/cli/serve/memory_check.h"
#include "runtime/cli/serve/registry_source.h"
#include "runtime/cli/serve/serve_options.h"
#include "runtime/cli/serve/serve_ports.h"
#include "runtime/cli/serve/try_it.h"
#include "runtime/cli/validators.h"
#include "runtime/net/tls/tls_watch.h"
#include "runtime/serving/host/host_metrics.h"
#include "runtime/serving/settings/tfserving_config.h"

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

net::TlsVersion least_tls(const ServeOptions& options) {
  return options.tls_min_version == "1.2" ? net::TlsVersion::k12 : net::TlsVersion::k13;
}

/// Null: in the clear.
Result<std::shared_ptr<net::TlsContext>> server_tls(const ServeOptions& options) {
  if (options.tls_cert.empty()) return nullptr;
  net::TlsServerOptions files{
      .certificate = options.tls_cert, .key = options.tls_key, .client_ca = options.tls_client_ca, .least = least_tls(options)};
  if (options.tls_cert_is_ssl_config) files.read = serving::read_tf_ssl_config;
  auto made = net::TlsContext::for_server(std::move(files));
  if (!made) return made.error().in("TLS");
  return made;
}

/// Null: peers are called in the clear, for they have no TLS either. They are shown this server's certificate, which --tls-client-ca may ask for.
Result<std::shared_ptr<net::TlsContext>> peers_tls(const ServeOptions& options) {
  if (options.registry_peers.empty() || options.tls_cert.empty()) return nullptr;
  auto made = net::TlsContext::for_client(
      {.ca = options.registry_peers_ca, .certificate = options.tls_cert, .key = options.tls_key, .least = least_tls(options)});
  if (!made) return made.error().in("registry peers: TLS");
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

/// How each dialect names the place where models lie.
constexpr std::array<std::string_view, serving::kDialectNames.size()> kWhereModelsLie = {
    "a model file, or --models with a folder of models",
    "--model-repository",
    "--model_base_path or --model_config_file",
    "--model_path or --config_path",
    "--model",
    "--model_dir"};

/// To other servers s3://BUCKET/PATH is a folder of models and no registry. It is refused like any object store, with what to do.
bool names_folder_in_bucket(const ServeOptions& options) {
  const auto in_bucket = [](const serving::ModelRoot& root) { return root.path.starts_with("s3://"); };
  return options.dialect != serving::Dialect::kSerin && std::ranges::any_of(options.source.roots, in_bucket);
}

/// Where models lie, and the name of the only one.
Result<serving::ModelSource> source_of(const ServeOptions& options, const registry::PeerOptions& peers, metrics::Registry& metrics) {
  serving::ModelSource source = options.source;
  if (options.check && source.load_at_start.empty()) source.control = serving::Control::kNone;  // all of them
  if (source.roots.empty())
    return Error{Code::kInvalidArgument,
                 fmt::format("nothing to serve is named: {}", kWhereModelsLie[static_cast<size_t>(options.dialect)])};
  if (!names_folder_in_bucket(options))
    SERIN_CHECK(use_registries(source, {.cache = options.registry_cache, .ca = options.registry_ca, .peers = peers}, metrics));
  if (options.name.empty()) return source;
  if (source.list.files) return Error{Code::kInvalidArgument, fmt::format("--name {}: models of a registry have names", options.name)};
  if (source.roots.size() > 1)
    return Error{Code::kInvalidArgument,
                 fmt::format("--name {}: is for one model, but {} places are given", options.name, source.roots.size())};
  source.roots.front().name = options.name;
  return source;
}

/// A user that names a model's own file wants that model, or to know why not. Empty: it was loaded, or there is no such file.
std::string why_no_file_was_loaded(const serving::ModelSource& source, const serving::Catalogue& catalogue) {
  for (const serving::ModelRoot& root : source.roots)
    if (!std::filesystem::is_regular_file(root.path)) return {};
  for (const auto& [name, model] : catalogue.models)
    for (const auto& [number, held] : model.versions)
      if (!held.version) return fmt::format("model '{}': {}", name, held.reason);
  return {};
}

std::string describe(const serving::ModelSource& source) {
  std::string text;
  for (const serving::ModelRoot& root : source.roots) text += (text.empty() ? "" : ", ") + root.path;
  return text;
}

std::string describe(const Ports& ports, const ServeOptions& options) {
  std::string text;
  const auto add = [&](std::string_view what, std::optional<uint16_t> port) {
    if (port) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *port);
  };
  add(options.tls_cert.empty() || options.tls_for_grpc_only ? "http" : "https", ports.http);
  add("gRPC", ports.grpc);
  add("metrics", ports.metrics);
  add("admin", ports.admin);
  return fmt::format("{} ({})", options.address, text);
}

/// One line for each version; whether all of them were loaded. `missing`: models that were asked for and are not there, and why.
bool print_what_loaded(const serving::Catalogue& catalogue, const std::map<std::string, std::string>& missing) {
  bool all = missing.empty();
  for (const auto& [name, why] : missing) std::printf("model '%s': FAILED: %s\n", name.c_str(), why.c_str());
  for (const auto& [name, model] : catalogue.models) {
    for (const auto& [number, held] : model.versions) {
      const std::string state = held.version && held.reason.empty() ? "ready" : "FAILED: " + held.reason;
      std::printf("model '%s' version %s: %s\n", name.c_str(), std::to_string(number).c_str(), state.c_str());
      all &= held.version != nullptr && held.reason.empty();
    }
  }
  std::fflush(stdout);
  return all;
}

/// `--check`: the exit code.
int check(serving::Repository& repository) {
  const auto missing = repository.load();
  const bool all = print_what_loaded(*repository.catalogue().get(), missing);
  const bool any = !repository.catalogue().get()->models.empty();
  if (!any) std::printf("there is no model\n");
  return all && any ? kYes : kNo;
}

/// What to paste into a terminal: a line for each of the first models, in Python for one.
void print_try_it(const serving::Catalogue& catalogue, const ServeOptions& options, const Ports& ports) {
  constexpr int kMost = 3;
  constexpr auto kPatience = std::chrono::seconds(2);  // for all trials together
  const bool somebody_looks = options.dialect == serving::Dialect::kSerin || ::isatty(STDOUT_FILENO) == 1;
  if (!ports.http || options.log_format != "text" || !somebody_looks) return;
  const bool secure = !options.tls_cert.empty() && !options.tls_for_grpc_only;
  const std::string host = options.address == "0.0.0.0" || options.address == "::" ? "127.0.0.1" : options.address;
  const TriedServer server{
      .url = fmt::format("http{}://{}:{}", secure ? "s" : "", host.find(':') == std::string::npos ? host : "[" + host + "]", *ports.http),
      .token = !options.tokens.empty(),
      .certificate = secure && !options.tls_client_ca.empty()};
  int shown = 0;
  std::string python;
  const auto until = serving::Clock::now() + kPatience;
  for (const auto& [name, model] : catalogue.models) {
    const auto version = model.latest();
    if (!version || shown == kMost) continue;
    const TryIt lines = try_it(*version, server, until);
    if (lines.curl.empty()) {
      log::info("model '{}': there is no line to try it with, for no sizes were found that it takes: {}", name, lines.why_not);
      continue;
    }
    if (shown++ == 0) {
      const std::string fill_in = to_fill_in(server);
      std::printf("\nTo try it:\n%s%s%s", fill_in.empty() ? "" : "\n", fill_in.c_str(), fill_in.empty() ? "" : "\n");
      python = lines.python;
    }
    std::printf("\n%s\n", lines.curl.c_str());
  }
  if (!python.empty()) std::printf("\nIn Python (pip install 'tritonclient[http]'):\n\n%s\n", python.c_str());
  std::fflush(stdout);
}

/// Readiness goes first, so that load balancers look elsewhere while requests are still served. `hang`: some never end. Whether all that were under way did.
bool end(serving::Frontend& frontend, ServePorts& ports, const ServeOptions& options, bool hang) {
  frontend.set_ready(false);
  remove_own_ready_file(options.ready_file);
  log::info("ending: no longer ready; requests are served for another {} s", options.drain_seconds);
  wait_for_end_signal(options.drain_seconds);
  const double seconds = hang ? 0 : options.end_seconds;
  const bool drained = ports.drain(milliseconds(seconds));
  log::info("ended{}", drained ? "" : fmt::format(": some requests were still in progress after {} s", seconds));
  return drained;
}

/// Of models whose settings say nothing. In the place of another server no request is refused for the number of those that wait, which is bounded by that of
/// connections there, too; in Triton's, a request's `timeout` is for its queue alone, and only where a model's configuration lets it be.
serving::ModelSettings defaults_of(const ServeOptions& options, const Compute& compute) {
  serving::ModelSettings settings{
      .versions = {.latest = options.latest_versions}, .precision = compute.precision, .device = compute.device};
  if (options.dialect != serving::Dialect::kSerin) settings.queues.levels.front().limit = serving::QueuePolicy::kNoLimit;
  settings.queues.timeout_is_deadline = options.dialect != serving::Dialect::kTriton;
  settings.config_name = options.config_name;
  settings.instances = options.instances;
  if (options.max_batch) settings.max_batch = *options.max_batch;
  return settings;
}

Result<int> serve(const ServeOptions& options) {
  FreedMemory freed_memory;
  SERIN_CHECK(configure_log(options.log_format, options.log_level));
  log::set_asked({.verbosity = options.log_verbosity});
  if (!options.log_file.empty()) SERIN_CHECK(log::write_to(options.log_file, options.log_to_stderr));
  for (const std::string& remark : options.remarks) log::warning("{}", remark);
  remove_stale_ready_file(options.ready_file);
  SERIN_TRY(const std::shared_ptr<net::TlsContext> tls, server_tls(options));
  SERIN_TRY(const std::shared_ptr<net::TlsContext> peer_tls, peers_tls(options));
  // Declared in the order in which they may be needed by what comes after: destruction runs the other way.
  metrics::Registry registry;
  const registry::PeerOptions peers{.names = options.registry_peers,
                                    .address = options.address,
                                    .tls = tls,
                                    .peer_tls = peer_tls,
                                    .certificate_name = options.registry_peers_name};
  SERIN_TRY(const serving::ModelSource source, source_of(options, peers, registry));
  SERIN_TRY(const Compute compute, read_compute(options));
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

  const auto process_metrics = metrics::export_process_metrics(registry);
  const auto host_metrics = serving::export_host_metrics(registry);
  const auto pinned_pool = options.dialect == serving::Dialect::kTriton ? serving::export_pinned_pool(registry) : decltype(host_metrics)();
  engine::Devices devices(options.cuda_plugin, options.cuda_cache, registry);
  if (const auto found = devices.choose(compute.device); !found)
    return found.error().in("--device " + options.device);
  else if (!compute.on_cpu())
    log::info("device {}: {}", options.device, found->why);
  net::Loops loops(static_cast<size_t>(options.io_threads));
  serving::Host host{.backend = *backend,
                     .bf16_backend = bf16_backend.get(),
                     .devices = &devices,
                     .metrics = registry,
                     .metric_options = {.tensorflow = options.dialect == serving::Dialect::kTfServing,
                                        .openvino = options.openvino_metrics,
                                        .quantiles = options.metric_quantiles},
                     .defaults = defaults_of(options, compute),
                     .boot = std::random_device{}() | uint64_t{std::random_device{}()} << 32,
                     .pool = serving::ComputePool(cores)};
  host.admit = memory_check(options.memory_check, planner::Machine{*backend, bf16_backend.get(), note, cores});
  const serving::SchedulerFactory schedulers(
      host, options.response_cache_bytes > 0 ? std::make_shared<serving::ResponseCache>(options.response_cache_bytes) : nullptr);
  SERIN_TRY(const auto repository, serving::Repository::open(source, host, schedulers));
  if (options.check) return check(*repository);
  SERIN_CHECK(host.tracer.start(options.trace));
  SERIN_TRY(const auto access, serving::Access::open({.tokens = options.tokens,
                                                      .admin_on_data_port = options.admin_on_data_port,
                                                      .order_of_clients = std::string(serving::order_of_clients(options.dialect)),
                                                      .http = options.restricted_http,
                                                      .grpc = options.restricted_grpc},
                                                     registry));
  const ServeLimits limits = serve_limits(options, serving::granted_memory());
  serving::Frontend frontend(loops, *repository, host,
                             {.dialect = options.dialect,
                              .shared_memory = options.shared_memory,
                              .cors = options.cors,
                              .strict_readiness = options.strict_readiness,
                              .name = options.id,
                              .limits = limits.requests,
                              .longest_http = options.longest_http});
  // Alive meanwhile, for a large repository must not fail its liveness probe. The servers that this one may stand in for listen once they have loaded, and
  // there are manifests that rely on it: a probe that only connects sends clients here.
  const auto open_ports = [&] { return ServePorts::open(options, limits, tls, loops, frontend, *access, registry); };
  std::unique_ptr<ServePorts> ports;
  if (options.dialect == serving::Dialect::kSerin) {
    SERIN_TRY(ports, open_ports());
  }
  net::TlsWatch certificates({tls, peer_tls}, registry);
  const auto missing = [&] {
    const EndsAtOnce meanwhile([&] {
      log::info("ending, before all models are loaded");
      if (ports) ports->drain(milliseconds(options.end_seconds));
    });
    return repository->load();
  }();
  if (options.exit_on_error && !print_what_loaded(*repository->catalogue().get(), missing)) {
    log::error("not all models were loaded: exiting (--exit-on-error)");
    return kNo;
  }
  if (const std::string why = why_no_file_was_loaded(source, *repository->catalogue().get()); !why.empty()) {
    std::fprintf(stderr, "serin serve: %s\n", why.c_str());
    return kNo;
  }
  if (!ports) {
    SERIN_TRY(ports, open_ports());
  }
  frontend.set_ready(true);
  SERIN_CHECK(write_ready_file(options.ready_file, ports->numbers()));
  log::info("serving {} at {}", describe(source), describe(ports->numbers(), options));
  print_try_it(*repository->catalogue().get(), options, ports->numbers());

  LostDevices lost(devices, milliseconds(options.device_timeout_seconds), milliseconds(options.exit_when_lost_seconds));
  wait_for_end_signal([&] { certificates.refresh(); },
                      [&] {
                        freed_memory.look();
                        return lost.look(*repository->catalogue().get());
                      });
  const auto live = [&] { return repository->catalogue().get()->live(&devices).has_value(); };
  const bool ended = end(frontend, *ports, options, lost.hang() && !live());
  const int code = live() ? kYes : kNo;  // a supervisor that looks at exit codes only learns it, too
  const bool hang = lost.hang() || (!ended && devices.hang(milliseconds(options.end_seconds / 2)));
  if (repository->stop_within(std::chrono::seconds(1))) {
    if (!hang) return code;
  } else {
    log::info("a model was still being loaded");
  }
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const auto code = serve(options);
  if (code) return *code;
  std::fprintf(stderr, "serin serve: %s\n", code.error().message.c_str());
  return kUsage;
}

}  // namespace serin::cli
