#include "runtime/cli/serve/serve_flags.h"

#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/validators.h"
#include "runtime/serving/settings/settings.h"

namespace serin::cli {
namespace {

void add_sources(CLI::App& command, ServeOptions& options) {
  auto& source = options.source;
  const auto add = [&source](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) source.roots.push_back({path});
  };
  command.add_option_function<std::vector<std::string>>(
      "models", add,
      "model files (x.onnx), folders with <name>/<version>/model.onnx, "
      "registry://FOLDER[/MODEL[:TAG]], s3://BUCKET/PREFIX[/MODEL[:TAG]], oci://HOST/PATH/MODEL[:TAG] "
      "or registry+https://HOST/PATH/MODEL[:TAG]");
  command.add_option_function<std::vector<std::string>>("--models", add, "the same as the positional argument")->allow_extra_args(false);
  command.add_option("--registry-cache", options.registry_cache,
                     "folder for versions from registries; default: serin/models in $XDG_CACHE_HOME or in ~/.cache");
  command.add_option("--registry-ca", options.registry_ca,
                     "registry+https, s3, oci: file with the authorities that may sign for the server; default: the system's");
  command.add_option(
      "--registry-peers", options.registry_peers,
      "HOST:PORT[,HOST:PORT]: servers that share the files of remote registries; this one offers its files at --address and that port");
  command.add_option("--name", options.name, "name of the only model: its file, or a folder with <version>/model.onnx");
  command
      .add_option_function<std::string>(
          "--control",
          [&source](const std::string& word) {
            source.control = word == "poll"   ? serving::Control::kPoll
                             : word == "none" ? serving::Control::kNone
                                              : serving::Control::kExplicit;
          },
          "poll: serve all models and follow changes; none: serve what exists at the start; explicit: serve what clients load")
      ->default_str("poll")
      ->check(CLI::IsMember({"poll", "none", "explicit"}));
  command.add_option("--load", source.load_at_start, "with --control explicit: a model to load at the start; '*': all")
      ->allow_extra_args(false);
  command
      .add_option_function<double>(
          "--poll-seconds", [&source](double seconds) { source.poll = milliseconds(seconds); }, "how often the folders are scanned")
      ->default_str("0.5")
      ->check(between(0.05, 3600.0));
  command.add_flag("--check", options.check, "load all models, print the results and exit; exit code 1 if a model did not load");
  command
      .add_option("--memory-check", options.memory_check,
                  "of a model that cannot fit into the memory by its plan: refuse to load it, warn only, or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"refuse", "warn", "off"}));
  command.add_flag("--exit-on-error", options.exit_on_error, "exit if a model does not load at the start");
}

void add_ports(CLI::App& command, ServeOptions& options) {
  command.add_option("--address", options.address, "address to listen on")->capture_default_str();
  add_port(command, "--port", options.port, "HTTP port; 0 picks a free one, off opens none");
  add_port(command, "--grpc-port", options.grpc_port, "gRPC port; 0 picks a free one, off opens none");
  command
      .add_option_function<double>(
          "--grpc-max-connection-age-seconds", [&options](double seconds) { options.grpc_age = milliseconds(seconds); },
          "ask older gRPC connections to close once they are answered, so that clients find new replicas; 0: never")
      ->check(between(0.0, 1e6));
  add_port(command, "--metrics-port", options.metrics_port, "port of /metrics; 0 picks a free one, off opens none");
  add_port(command, "--admin-port", options.admin_port, "HTTP port on 127.0.0.1 for admin requests (load models, change settings)");
  command.add_flag("--admin-on-data-port", options.admin_on_data_port, "accept admin requests on the client ports too");
  command.add_flag("--shared-memory", options.shared_memory,
                   "allow clients on this machine to name shared memory regions that contain tensors");
  command.add_flag("--cors", options.cors, "allow web pages of any origin to call the TensorFlow Serving API");
  command.add_option("--tokens", options.tokens,
                     "file of tokens with roles (read, infer, admin); without it every client that reaches a port may use it");
  command
      .add_option_function<int64_t>(
          "--max-body-bytes", [&options](int64_t bytes) { options.max_body_bytes = options.max_message_bytes = bytes; },
          "largest request body or gRPC message; those over 64 MiB share a sixteenth of the memory, or as much as one needs")
      ->default_str(std::to_string(options.body_bytes))
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 32));
  command
      .add_option("--response-cache-bytes", options.response_cache_bytes,
                  "memory for the cached answers of models with 'response_cache: true'")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
}

void add_tls(CLI::App& command, ServeOptions& options) {
  auto* cert = command.add_option("--tls-cert", options.tls_cert,
                                  "certificate (PEM), followed by its intermediates; HTTP and gRPC then use TLS only");
  command.add_option("--tls-key", options.tls_key, "key of the certificate (PEM, not encrypted)")->needs(cert);
  command.add_option("--tls-client-ca", options.tls_client_ca, "authorities (PEM), one of which must have signed the client's certificate")
      ->needs(cert);
  command.add_option("--tls-min-version", options.tls_min_version, "1.2 or 1.3")
      ->capture_default_str()
      ->check(CLI::IsMember({"1.2", "1.3"}));
  cert->needs("--tls-key");
  auto* peers = command.get_option("--registry-peers");
  command
      .add_option("--registry-peers-ca", options.registry_peers_ca,
                  "with --tls-cert: file with the authorities that may sign for peers; default: the system's")
      ->needs(cert)
      ->needs(peers);
  command
      .add_option("--registry-peers-name", options.registry_peers_name,
                  "with --tls-cert: name in the certificates of peers; default: the HOST in --registry-peers")
      ->needs(cert)
      ->needs(peers);
}

void add_machine(CLI::App& command, ServeOptions& options) {
  command.add_option("--io-threads", options.io_threads, "threads for sockets")->capture_default_str()->check(CLI::Range(1, 64));
  command.add_option("--threads", options.threads, "threads for computing; 0: as many as the process has cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_option("--isa", options.isa, "scalar, avx2 or avx512; default: the best of this machine");
  command
      .add_option("--precision", options.precision,
                  "auto, fp32, bf16 or int8; tf32 or fp16 on a device; for models whose serin.yaml does not set it")
      ->capture_default_str();
  command
      .add_option("--device", options.device,
                  "cpu, cuda, cuda:N, or auto (cuda if there is a device); for models whose serin.yaml does not set it")
      ->capture_default_str();
  command.add_option("--instances", options.instances, "runs of a model at the same time; for models whose serin.yaml does not set it")
      ->check(CLI::Range(1, 1024));
  command.add_option("--max-batch", options.max_batch, "rows in one run; for models whose serin.yaml does not set it")
      ->check(CLI::Range(int64_t{1}, serving::kMostBatch));
  command.add_option("--cuda-plugin", options.cuda_plugin, "libserin_cuda.so; default: next to the program, if there is a driver");
  command.add_option("--cuda-cache", options.cuda_cache, kCudaCacheHelp);
  command
      .add_option("--device-timeout", options.device_timeout_seconds,
                  "seconds after which a device that has not finished a run counts as lost; 0: never")
      ->capture_default_str()
      ->check(between(0.0, 1e6));
  command
      .add_option("--exit-when-lost", options.exit_when_lost_seconds,
                  "seconds until a server that is not live because of lost devices exits with code 1; 0: never")
      ->capture_default_str()
      ->check(between(0.0, 1e6));
}

}  // namespace

void add_serve_flags(CLI::App& command, ServeOptions& options) {
  add_sources(command, options);
  add_ports(command, options);
  add_tls(command, options);
  add_machine(command, options);
  command.add_option("--drain-seconds", options.drain_seconds, "seconds for which to continue serving after SIGTERM")
      ->capture_default_str()
      ->check(between(0.0, 3600.0));
  command.add_option("--ready-file", options.ready_file, "file for pid and ports, written when the server is ready");
  command.add_option("--log-format", options.log_format, "text or json")->capture_default_str();
  command.add_option("--log-level", options.log_level, "debug, info, warning, error or off")->capture_default_str();
  command.add_option_function<std::string>(
      "--trace-file",
      [&trace = options.trace](const std::string& file) {
        trace.file = file;
        trace.on = true;
      },
      "file for the timestamps of every --trace-rate'th request, in the format of Triton's trace_summary.py");
  command.add_option("--trace-rate", options.trace.rate)->capture_default_str()->check(CLI::Range(int64_t{1}, int64_t{1} << 53));
}

void add_serve(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "serve", "Serve models: Open Inference Protocol v2 over HTTP and gRPC, TensorFlow Serving's protocols, KServe's and Paddle's");
  auto options = std::make_shared<ServeOptions>();
  add_serve_flags(*command, *options);
  command
      ->add_option("--as",
                   "accept the command line of another server (--as NAME, then its own flags): tritonserver, tensorflow_model_server, "
                   "ovms, paddle or kserve")
      ->check(CLI::IsMember(serving::kDialectNames));
  command->callback([options, &exit_code] { exit_code = run_serve(*options); });
}

}  // namespace serin::cli
