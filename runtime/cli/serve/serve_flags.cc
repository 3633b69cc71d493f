#include "runtime/cli/serve/serve_flags.h"

#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/validators.h"

namespace serin::cli {
namespace {

void add_sources(CLI::App& command, ServeOptions& options) {
  auto& source = options.source;
  const auto add = [&source](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) source.roots.push_back({path});
  };
  command.add_option_function<std::vector<std::string>>("models", add, "model files (x.onnx), or folders with <name>/<version>/model.onnx");
  command.add_option_function<std::vector<std::string>>("--models", add, "the same")->allow_extra_args(false);
  command.add_option("--name", options.name, "of the one model that is served: its file, or a folder with <version>/model.onnx");
  command
      .add_option_function<std::string>(
          "--control",
          [&source](const std::string& word) {
            source.control = word == "poll"   ? serving::Control::kPoll
                             : word == "none" ? serving::Control::kNone
                                              : serving::Control::kExplicit;
          },
          "poll: what lies there is served, and what changes is swapped in; none: what lies there at the start; explicit: what is asked "
          "for")
      ->default_str("poll")
      ->check(CLI::IsMember({"poll", "none", "explicit"}));
  command.add_option("--load", source.load_at_start, "with --control explicit: a model to load at the start; '*': all")
      ->allow_extra_args(false);
  command
      .add_option_function<double>(
          "--poll-seconds", [&source](double seconds) { source.poll = milliseconds(seconds); }, "how often the places are looked at")
      ->default_str("0.5")
      ->check(between(0.05, 3600.0));
  command.add_flag("--check", options.check, "load everything, say what came of it, end: exit code 1 where something did not load");
  command.add_flag("--exit-on-error", options.exit_on_error, "end where a model does not load at the start");
}

void add_ports(CLI::App& command, ServeOptions& options) {
  command.add_option("--address", options.address, "address to listen on")->capture_default_str();
  add_port(command, "--port", options.port, "HTTP port; 0 picks a free one, off: none");
  add_port(command, "--grpc-port", options.grpc_port, "gRPC port; 0 picks a free one, off: none");
  command
      .add_option_function<double>(
          "--grpc-max-connection-age-seconds", [&options](double seconds) { options.grpc_age = milliseconds(seconds); },
          "older connections of gRPC are told to go once they are answered, so that clients come to new replicas, too; 0: none")
      ->check(between(0.0, 1e6));
  add_port(command, "--metrics-port", options.metrics_port, "port of /metrics; 0 picks a free one, off: none");
  add_port(command, "--admin-port", options.admin_port, "HTTP port on 127.0.0.1 where models are loaded and settings changed");
  command.add_flag("--admin-on-data-port", options.admin_on_data_port, "take such orders at the ports of clients, too");
  command.add_flag("--shared-memory", options.shared_memory, "clients on this machine may name regions of its memory that tensors lie in");
  command.add_flag("--cors", options.cors, "pages of any origin may ask TensorFlow Serving's API");
  command.add_option("--tokens", options.tokens,
                     "file of tokens with roles (read, infer, admin); default: whoever reaches a port may use it");
  command
      .add_option_function<int64_t>(
          "--max-body-bytes", [&options](int64_t bytes) { options.max_body_bytes = options.max_message_bytes = bytes; },
          "largest request body, or message of gRPC; beyond 64 MiB each they share a sixteenth of the memory, or what one needs")
      ->default_str(std::to_string(options.body_bytes))
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 32));
  command
      .add_option("--response-cache-bytes", options.response_cache_bytes,
                  "memory for answers of models whose settings say 'response_cache: true'")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
}

void add_tls(CLI::App& command, ServeOptions& options) {
  auto* cert = command.add_option("--tls-cert", options.tls_cert,
                                  "certificate (PEM, behind it those that lead to its authority): HTTP and gRPC by TLS alone");
  command.add_option("--tls-key", options.tls_key, "its key (PEM, not encrypted)")->needs(cert);
  command.add_option("--tls-client-ca", options.tls_client_ca, "authorities (PEM) one of which must have signed a client's certificate")
      ->needs(cert);
  command.add_option("--tls-min-version", options.tls_min_version, "1.2 or 1.3")
      ->capture_default_str()
      ->check(CLI::IsMember({"1.2", "1.3"}));
  cert->needs("--tls-key");
}

void add_machine(CLI::App& command, ServeOptions& options) {
  command.add_option("--io-threads", options.io_threads, "threads for sockets")->capture_default_str()->check(CLI::Range(1, 64));
  command.add_option("--threads", options.threads, "threads for computing; 0: as many as cores are granted")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_option("--isa", options.isa, "scalar, avx2 or avx512; default: the best there is");
  command
      .add_option("--precision", options.precision,
                  "auto, fp32, bf16 or int8; tf32 or fp16 on a device: for models whose serin.yaml does not say")
      ->capture_default_str();
  command
      .add_option("--device", options.device,
                  "cpu, cuda, cuda:N, or auto (cuda where there is one), for models whose serin.yaml does not say")
      ->capture_default_str();
  command.add_option("--cuda-plugin", options.cuda_plugin, "libserin_cuda.so; default: beside the program, where there is a driver");
  command.add_option("--cuda-cache", options.cuda_cache, kCudaCacheHelp);
  command
      .add_option("--device-timeout", options.device_timeout_seconds,
                  "seconds after which a device that has not ended a run is lost; 0: never")
      ->capture_default_str()
      ->check(between(0.0, 1e6));
  command
      .add_option("--exit-when-lost", options.exit_when_lost_seconds,
                  "seconds for which a server goes on that is not live any more because devices are lost; then it ends with exit code 1; "
                  "0: for ever")
      ->capture_default_str()
      ->check(between(0.0, 1e6));
}

}  // namespace

void add_serve_flags(CLI::App& command, ServeOptions& options) {
  add_sources(command, options);
  add_ports(command, options);
  add_tls(command, options);
  add_machine(command, options);
  command.add_option("--drain-seconds", options.drain_seconds, "how long to serve on after SIGTERM")
      ->capture_default_str()
      ->check(between(0.0, 3600.0));
  command.add_option("--ready-file", options.ready_file, "written with pid and ports once ready");
  command.add_option("--log-format", options.log_format, "text or json")->capture_default_str();
  command.add_option("--log-level", options.log_level, "debug, info, warning, error or off")->capture_default_str();
  command.add_option_function<std::string>(
      "--trace-file",
      [&trace = options.trace](const std::string& file) {
        trace.file = file;
        trace.on = true;
      },
      "when every --trace-rate'th request got where, as Triton's trace_summary.py reads it");
  command.add_option("--trace-rate", options.trace.rate)->capture_default_str()->check(CLI::Range(int64_t{1}, int64_t{1} << 53));
}

void add_serve(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "serve", "Serve models: Open Inference Protocol v2 over HTTP and gRPC, TensorFlow Serving's protocols, KServe's and Paddle's");
  auto options = std::make_shared<ServeOptions>();
  add_serve_flags(*command, *options);
  command
      ->add_option(
          "--as",
          "as another server is called (--as NAME and then its own flags): tritonserver, tensorflow_model_server, ovms, paddle or kserve")
      ->check(CLI::IsMember(serving::kDialectNames));
  command->callback([options, &exit_code] { exit_code = run_serve(*options); });
}

}  // namespace serin::cli
