// serve_as.cc: the command lines of other servers, each a function that reads like their --help.

#include "runtime/cli/serve_as.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/config.h"
#include "runtime/cli/serve_flags.h"
#include "runtime/cli/validators.h"
#include "runtime/serving/tfserving_config.h"

namespace serin::cli {
namespace {

using serving::Control;
using serving::Dialect;

constexpr const char* kOneEngine = "there is one engine, which sizes itself";

/// Triton's certificates are for gRPC, where the switch is on: neither does the one without the other say what is meant.
void check_triton_tls(const ServeOptions& options) {
  if (options.tls_for_grpc_only && options.tls_cert.empty())
    throw CLI::ValidationError("--grpc-use-ssl", "needs --grpc-server-cert and --grpc-server-key");
  if (options.tls_needs_client_ca && options.tls_client_ca.empty())
    throw CLI::ValidationError("--grpc-use-ssl-mutual", "needs --grpc-root-cert");
  if (!options.tls_cert.empty() && !options.tls_for_grpc_only)
    throw CLI::ValidationError("--grpc-server-cert", "needs --grpc-use-ssl=true");
}

/// "true", "1" and nothing at all: yes.
bool parse_yes(const std::string& flag, const std::string& word) {
  const std::string lower = CLI::detail::to_lower(word);
  if (lower.empty() || lower == "true" || lower == "1" || lower == "yes" || lower == "on") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") return false;
  throw CLI::ValidationError(flag, word + " is neither true nor false");
}

/// Another server's flags on top of Serin's, which give way where both have the name.
class Flags {
 public:
  Flags(CLI::App& app, ServeOptions& options) : app_(app), options_(options) {}

  template <class T>
  CLI::Option* value(const char* flag, std::function<void(const T&)> set) {
    make_way(flag);
    return app_.add_option_function<T>(flag, std::move(set))->take_last();
  }
  void text(const char* flag, std::string& to) {
    value<std::string>(flag, [&to](const std::string& text) { to = text; });
  }
  void each(const char* flag, std::function<void(const std::string&)> set) {
    make_way(flag);
    const auto add = [set = std::move(set)](const std::vector<std::string>& all) { std::ranges::for_each(all, set); };
    app_.add_option_function<std::vector<std::string>>(flag, add)->allow_extra_args(false);
  }
  void port(const char* flag, std::optional<uint16_t>& to, const char* none = "off") {
    make_way(flag);
    add_port(app_, flag, to, "", none)->take_last();
  }
  void yes_or_no(const char* flag, std::function<void(bool)> set) {
    make_way(flag);
    const auto read = [flag, set = std::move(set)](const std::string& word) { set(parse_yes(flag, word)); };
    app_.add_option_function<std::string>(flag, read)->expected(0, 1)->take_last();
  }
  void ignored(std::initializer_list<const char*> flags, const char* why) {
    for (const char* flag : flags) {
      make_way(flag);
      const auto note = [this, flag, why](const std::string&) {
        options_.remarks.push_back(fmt::format("{} changes nothing: {}", flag, why));
      };
      app_.add_option_function<std::string>(flag, note)->expected(0, 1)->take_last();
    }
  }
  /// Ignoring these would let in who was to be kept out.
  void refused(std::initializer_list<const char*> flags, const char* instead) {
    for (const char* flag : flags) {
      const auto refuse = [flag, instead](const std::string&) {
        throw CLI::ValidationError(flag, std::string("is not taken: ") + instead);
      };
      app_.add_option_function<std::string>(flag, refuse)->expected(0, 1)->take_last();
    }
  }

 private:
  void make_way(const char* flag) {
    if (CLI::Option* own = app_.get_option_no_throw(flag)) app_.remove_option(own);
  }

  CLI::App& app_;
  ServeOptions& options_;
};

std::chrono::milliseconds seconds(double count) { return std::chrono::milliseconds(static_cast<int64_t>(count * 1000)); }

/// A model's own folder; its name may come before or behind.
struct OneModel {
  std::string name, path;
  void add_to(serving::ModelSource& source) const {
    if (!path.empty()) source.roots.push_back({path, name});
  }
};

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// ---- tritonserver ----

Control parse_control(const std::string& word) {
  if (word == "none") return Control::kNone;
  if (word == "poll") return Control::kPoll;
  if (word == "explicit") return Control::kExplicit;
  throw CLI::ValidationError("--model-control-mode", word + " is none of: none, poll, explicit");
}

void add_triton_ports(Flags& flags, ServeOptions& options) {
  flags.port("--http-port", options.port);
  flags.text("--http-address", options.address);
  flags.text("--grpc-address", options.grpc_address);
  flags.text("--metrics-address", options.metrics_address);
  // Whatever the order of the flags: a port that is given does not open one that is not allowed.
  const auto allow = [&](const char* flag, std::optional<uint16_t>& port) {
    flags
        .value<std::string>(flag,
                            [flag, &port](const std::string& word) {
                              if (!parse_yes(flag, word)) port.reset();
                            })
        ->trigger_on_parse(false);
  };
  allow("--allow-http", options.port);
  allow("--allow-grpc", options.grpc_port);
  allow("--allow-metrics", options.metrics_port);
  flags.value<int64_t>("--http-max-input-size", [&](int64_t bytes) { options.max_body_bytes = bytes; })
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 32));
  flags.value<int>("--http-thread-count", [&](int count) { options.io_threads = std::clamp(count, 1, 64); });
}

void add_triton_tls(Flags& flags, ServeOptions& options) {
  flags.yes_or_no("--grpc-use-ssl", [&](bool yes) { options.tls_for_grpc_only = yes; });
  flags.yes_or_no("--grpc-use-ssl-mutual", [&](bool yes) {
    options.tls_for_grpc_only |= yes;
    options.tls_needs_client_ca = yes;
  });
  flags.text("--grpc-server-cert", options.tls_cert);
  flags.text("--grpc-server-key", options.tls_key);
  flags.text("--grpc-root-cert", options.tls_client_ca);
}

void add_triton_log(Flags& flags, ServeOptions& options) {
  const auto at_least = [&options](const char* level) {
    return [&options, level](bool yes) {
      if (!yes) options.log_level = level;
    };
  };
  flags.value<int>("--log-verbose", [&](int level) {
    if (level > 0) options.log_level = "debug";
  });
  flags.yes_or_no("--log-info", at_least("warning"));
  flags.yes_or_no("--log-warning", at_least("error"));
  flags.yes_or_no("--log-error", at_least("off"));
  flags.ignored({"--log-format"}, "lines begin with the time in ISO 8601; Serin's own form for machines is JSON");
  flags.ignored({"--log-file"}, "the log goes to stderr");
}

void add_triton(Flags& flags, ServeOptions& options) {
  options.source.control = Control::kNone;
  options.source.poll = std::chrono::seconds(15);
  options.latest_versions = 1;
  options.admin_on_data_port = options.shared_memory = options.exit_on_error = true;
  options.drain_seconds = 0;
  const auto root = [&](const std::string& path) { options.source.roots.push_back({path}); };
  flags.each("--model-repository", root);
  flags.each("--model-store", root);
  flags.value<std::string>("--model-control-mode", [&](const std::string& word) { options.source.control = parse_control(word); });
  flags.each("--load-model", [&](const std::string& name) { options.source.load_at_start.push_back(name); });
  flags.value<double>("--repository-poll-secs", [&](double count) { options.source.poll = seconds(count); })->check(between(0.05, 1e6));
  flags.yes_or_no("--exit-on-error", [&](bool yes) { options.exit_on_error = yes; });
  flags.value<double>("--exit-timeout-secs", [&](double count) { options.end_seconds = count; })->check(between(0, 1e6));
  add_triton_ports(flags, options);
  add_triton_tls(flags, options);
  add_triton_log(flags, options);
  flags.ignored({"--backend-directory",
                 "--backend-config",
                 "--repoagent-directory",
                 "--cache-directory",
                 "--pinned-memory-pool-byte-size",
                 "--cuda-memory-pool-byte-size",
                 "--cuda-virtual-address-size",
                 "--min-supported-compute-capability",
                 "--buffer-manager-thread-count",
                 "--model-load-thread-count",
                 "--model-load-retry-count",
                 "--model-load-gpu-limit",
                 "--enable-peer-access",
                 "--host-policy",
                 "--rate-limit",
                 "--rate-limit-resource",
                 "--grpc-infer-allocation-pool-size",
                 "--grpc-infer-thread-count",
                 "--grpc-max-response-pool-size",
                 "--grpc-infer-response-compression-level"},
                kOneEngine);
  flags.ignored({"--strict-model-config", "--disable-auto-complete-config"}, "what a model's file says is known from it");
  flags.ignored({"--strict-readiness"}, "ready is who has loaded everything and lost nothing since");
  flags.ignored({"--allow-gpu-metrics", "--allow-cpu-metrics", "--metrics-interval-ms", "--metrics-config"},
                "metrics are read when they are asked for");
  flags.ignored({"--trace-config", "--trace-file", "--trace-level", "--trace-rate", "--trace-count", "--trace-log-frequency"},
                "there are no traces");
  flags.ignored(
      {"--id", "--model-namespacing", "--reuse-http-port", "--reuse-grpc-port", "--http-header-forward-pattern",
       "--grpc-header-forward-pattern", "--grpc-keepalive-time", "--grpc-keepalive-timeout", "--grpc-keepalive-permit-without-calls",
       "--grpc-http2-max-pings-without-data", "--grpc-http2-min-recv-ping-interval-without-data", "--grpc-http2-max-ping-strikes",
       "--grpc-max-connection-age", "--grpc-max-connection-age-grace"},
      "there is no such setting");
  flags.refused({"--http-restricted-api", "--grpc-restricted-protocol"}, "who may call what says --tokens FILE");
}

// ---- tensorflow_model_server ----

void add_tfserving(Flags& flags, ServeOptions& options, OneModel& model) {
  options.latest_versions = 1;
  options.port.reset();
  options.grpc_port = 8500;
  options.metrics_port.reset();
  options.metrics_path = "/monitoring/prometheus/metrics";
  options.source.poll = std::chrono::seconds(1);
  // As the image of TensorFlow Serving: its entry point makes the flags out of these two.
  model = {.name = environment("MODEL_NAME", "default"), .path = {}};
  if (const std::string base = environment("MODEL_BASE_PATH", ""); !base.empty())
    model = {environment("MODEL_NAME", "model"), base + "/" + environment("MODEL_NAME", "model")}, options.port = 8501;
  flags.port("--port", options.grpc_port, "0");
  flags.port("--rest_api_port", options.port, "0");
  flags.text("--model_name", model.name);
  flags.text("--model_base_path", model.path);
  flags.value<std::string>("--model_config_file", [&](const std::string& path) {
    auto roots = serving::read_tf_config(path);
    if (!roots) throw CLI::ValidationError("--model_config_file", roots.error().message);
    options.source.roots = std::move(*roots);
  });
  flags.value<double>("--file_system_poll_wait_seconds", [&](double count) {
    options.source.control = count > 0 ? Control::kPoll : Control::kNone;
    if (count > 0) options.source.poll = seconds(count);
  });
  flags.value<int>("--rest_api_num_threads", [&](int count) { options.io_threads = std::clamp(count, 1, 64); });
  flags.yes_or_no("--rest_api_enable_cors_support", [&](bool yes) { options.cors = yes; });
  flags.ignored({"--monitoring_config_file"}, "metrics are at /monitoring/prometheus/metrics");
  flags.ignored({"--enable_batching",
                 "--batching_parameters_file",
                 "--tensorflow_session_parallelism",
                 "--tensorflow_intra_op_parallelism",
                 "--tensorflow_inter_op_parallelism",
                 "--per_process_gpu_memory_fraction",
                 "--num_load_threads",
                 "--num_unload_threads",
                 "--max_num_load_retries",
                 "--load_retry_interval_micros",
                 "--saved_model_tags",
                 "--enable_model_warmup",
                 "--num_request_iterations_for_warmup",
                 "--flush_filesystem_caches",
                 "--use_tflite_model",
                 "--xla_cpu_compilation_enabled",
                 "--xla_gpu_compilation_enabled",
                 "--mixed_precision",
                 "--prefer_tflite_model",
                 "--thread_pool_factory_config_file",
                 "--remove_unused_fields_from_bundle_metagraph",
                 "--platform_config_file",
                 "--tensorflow_session_config_file",
                 "--grpc_max_threads"},
                kOneEngine);
  flags.ignored(
      {"--rest_api_timeout_in_ms", "--grpc_channel_arguments", "--enable_signature_method_name_check", "--enable_profiler",
       "--enable_grpc_healthcheck_service", "--enable_serialization_as_tensor_content", "--allow_version_labels_for_unavailable_models",
       "--force_allow_any_version_labels_for_absent_models", "--model_config_file_poll_wait_seconds"},
      "there is no such setting");
  flags.refused({"--ssl_config_file"}, "TLS is asked for with --tls-cert, --tls-key and --tls-client-ca");
  flags.refused({"--grpc_socket_path"}, "a UNIX socket is not served");
}

// ---- ovms ----

/// {"model_config_list": [{"config": {"name": "digits", "base_path": "/models/digits"}}]}
Status read_ovms_config(const std::string& path, serving::ModelSource& source) {
  SERIN_TRY(const config::Node root, config::Node::load(path));
  SERIN_TRY(const config::Node list, root.at("model_config_list"));
  for (const config::Node& item : list.items()) {
    SERIN_TRY(const config::Node model, item.at("config"));
    SERIN_TRY(const config::Node name, model.at("name"));
    SERIN_TRY(const config::Node base, model.at("base_path"));
    SERIN_TRY(std::string name_text, name.text());
    SERIN_TRY(std::string base_text, base.text());
    source.roots.push_back({std::move(base_text), std::move(name_text)});
  }
  return {};
}

void add_ovms(Flags& flags, ServeOptions& options, OneModel& model) {
  options.latest_versions = 1;
  options.port.reset();
  options.grpc_port = 9178;
  options.metrics_port.reset();
  options.source.poll = std::chrono::seconds(1);
  flags.port("--port", options.grpc_port, "0");
  flags.port("--rest_port", options.port, "0");
  flags.text("--model_name", model.name);
  flags.text("--model_path", model.path);
  flags.value<std::string>("--config_path", [&](const std::string& path) {
    if (const Status read = read_ovms_config(path, options.source); !read)
      throw CLI::ValidationError("--config_path", read.error().message);
  });
  flags.text("--rest_bind_address", options.address);
  flags.text("--grpc_bind_address", options.grpc_address);
  flags.value<double>("--file_system_poll_wait_seconds", [&](double count) {
    options.source.control = count > 0 ? Control::kPoll : Control::kNone;
    if (count > 0) options.source.poll = seconds(count);
  });
  flags.value<std::string>("--target_device", [&](const std::string& device) { options.device = device == "CPU" ? "cpu" : "auto"; });
  flags.value<std::string>(
      "--log_level", [&](const std::string& level) { options.log_level = level == "TRACE" ? "debug" : CLI::detail::to_lower(level); });
  flags.yes_or_no("--metrics_enable", [&](bool yes) { options.metrics_path = yes ? "/metrics" : ""; });
  flags.value<int>("--rest_workers", [&](int count) { options.io_threads = std::clamp(count, 1, 64); });
  flags.ignored({"--grpc_workers", "--batch_size", "--shape", "--layout", "--mean", "--scale", "--nireq", "--plugin_config", "--cache_dir",
                 "--cpu_extension", "--model_version_policy", "--stateful", "--idle_sequence_cleanup", "--low_latency_transformation",
                 "--max_sequence_number", "--sequence_cleaner_poll_wait_minutes", "--custom_node_resources_cleaner_interval_seconds"},
                kOneEngine);
  flags.ignored({"--metrics_list", "--log_path", "--grpc_channel_arguments", "--grpc_max_threads", "--grpc_memory_quota",
                 "--allow_credentials", "--allowed_headers", "--allowed_methods", "--allowed_origins"},
                "there is no such setting");
}

// ---- KServe's model servers, of which Paddle's is one ----

void add_kserve(Flags& flags, ServeOptions& options, OneModel& model) {
  options.port = 8080;
  options.grpc_port = 8081;
  options.metrics_port.reset();
  options.metrics_path = "/metrics";
  model.name = "model";
  flags.port("--http_port", options.port);
  flags.port("--grpc_port", options.grpc_port);
  flags.text("--model_name", model.name);
  flags.text("--model_dir", model.path);
  flags.value<int>("--max_threads", [&](int count) { options.threads = std::max(0, count); });
  flags.ignored(
      {"--workers", "--max_asyncio_workers", "--nthread", "--enable_grpc", "--enable_docs_url", "--enable_latency_logging",
       "--configure_logging", "--log_config_file", "--access_log_format", "--enable_predictor", "--predictor_host", "--predictor_protocol",
       "--predictor_request_timeout_seconds", "--grpc_max_send_message_length", "--grpc_max_receive_message_length"},
      "there is no such setting");
}

void add_paddle(Flags& flags, ServeOptions& options, OneModel& model) {
  add_kserve(flags, options, model);
  options.grpc_port.reset();
  flags.port("--port", options.port);
  flags.text("--model", model.path);
  flags.value<int>("--thread", [&](int count) { options.threads = std::max(0, count); });
  flags.ignored({"--gpu_ids", "--use_trt", "--use_mkl", "--ir_optim", "--mem_optim", "--max_body_size", "--op_num", "--op_max_batch",
                 "--precision_mode"},
                kOneEngine);
}

void add_dialect(Dialect dialect, Flags& flags, ServeOptions& options, OneModel& model) {
  switch (dialect) {
    case Dialect::kTriton: return add_triton(flags, options);
    case Dialect::kTfServing: return add_tfserving(flags, options, model);
    case Dialect::kOvms: return add_ovms(flags, options, model);
    case Dialect::kPaddle: return add_paddle(flags, options, model);
    case Dialect::kKserve: return add_kserve(flags, options, model);
    case Dialect::kSerin: return;
  }
}

/// Of a program by its path; nothing where it is `serin` itself.
std::optional<Dialect> dialect_of_link(std::string_view path) {
  const auto dialect = serving::parse_dialect(path.substr(path.rfind('/') + 1));
  return dialect == Dialect::kSerin ? std::nullopt : dialect;
}

/// The words behind the program's name, without `serve` and `--as NAME`; the last first, as CLI11 wants them.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  const bool by_name = dialect_of_link(argv[0]).has_value();
  for (int i = by_name ? 1 : 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!by_name && word == "--as") {
      ++i;
    } else if (by_name || !word.starts_with("--as=")) {
      words.emplace_back(word);
    }
  }
  std::ranges::reverse(words);
  return words;
}

}  // namespace

std::optional<Dialect> dialect_of(int argc, char** argv) {
  if (argc < 1) return std::nullopt;
  auto dialect = dialect_of_link(argv[0]);
  for (int i = 2; i < argc && !dialect && std::string_view(argv[1]) == "serve"; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--as=")) dialect = serving::parse_dialect(word.substr(5));
    if (word == "--as" && i + 1 < argc) dialect = serving::parse_dialect(argv[i + 1]);
  }
  return dialect == Dialect::kSerin ? std::nullopt : dialect;
}

int serve_as(Dialect dialect, int argc, char** argv) {
  const std::string name(serving::kDialectNames[static_cast<size_t>(dialect)]);
  CLI::App app("Serin, called as " + name, name);
  ServeOptions options{.dialect = dialect};
  options.address = "0.0.0.0";
  options.device = "auto";
  OneModel model;
  add_serve_flags(app, options);
  Flags flags(app, options);
  add_dialect(dialect, flags, options, model);
  try {
    app.parse(words_of(argc, argv));
    model.add_to(options.source);
    if (dialect == Dialect::kTriton) check_triton_tls(options);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), e.what());
    return kUsage;
  }
  return run_serve(options);
}

}  // namespace serin::cli
