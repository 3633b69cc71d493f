// serve_as_tfserving.cc: the command line of tensorflow_model_server.

#include <cstdlib>

#include "runtime/cli/serve/dialect_flags.h"
#include "runtime/serving/settings/tfserving_config.h"

namespace serin::cli {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

void add_tfserving(Flags& flags, ServeOptions& options, OneModel& model) {
  options.latest_versions = 1;
  options.body_bytes = options.message_bytes = INT32_MAX;
  options.port.reset();
  options.grpc_port = 8500;
  options.metrics_port.reset();
  options.metrics_paths = {serving::kTfMetricsPath, "/metrics"};  // the latter is where KServe looks
  options.source.poll = std::chrono::seconds(1);
  // As the image of TensorFlow Serving: its entry point makes the flags out of these two, the second of which it sets itself.
  model = {.name = environment("MODEL_NAME", "default"), .path = {}};
  if (!environment("MODEL_BASE_PATH", "").empty() || !environment("MODEL_NAME", "").empty()) {
    const std::string name = environment("MODEL_NAME", "model");
    model = {name, environment("MODEL_BASE_PATH", "/models") + "/" + name};
    options.port = 8501;
  }
  options.source.places_may_come = true;
  flags.port("--port", options.grpc_port, "0");
  flags.port("--rest_api_port", options.port, "0");
  flags.text("--model_name", model.name);
  flags.text("--model_base_path", model.path);
  flags.value<std::string>("--model_config_file", [&](const std::string& path) {
    auto listed = serving::read_tf_config(path);
    if (!listed) throw CLI::ValidationError("--model_config_file", listed.error().message);
    serve_list(options, path, std::move(*listed), serving::read_tf_config);
    model.path.clear();  // flags are read in the order of their declaration: it goes before --model_base_path and the environment's
  });
  options.source.list.poll = std::chrono::milliseconds(0);
  flags
      .value<double>("--model_config_file_poll_wait_seconds",
                     [&](double count) {
                       options.source.list.poll = count > 0 ? std::max(milliseconds(count), kOftenest) : std::chrono::milliseconds(0);
                     })
      ->check(between(-1e6, 1e6));
  options.source.labels_need_versions = true;
  for (const char* flag : {"--allow_version_labels_for_unavailable_models", "--force_allow_any_version_labels_for_absent_models"})
    flags.yes_or_no(flag, [&](bool yes) { options.source.labels_need_versions &= !yes; });
  flags.poll_seconds("--file_system_poll_wait_seconds");
  flags.io_threads("--rest_api_num_threads");
  flags.value<int64_t>("--rest_api_timeout_in_ms", [&](int64_t count) { options.longest_http = std::chrono::milliseconds(count); })
      ->check(between(0, 86'400'000));
  flags.yes_or_no("--rest_api_enable_cors_support", [&](bool yes) { options.cors = yes; });
  flags.value<std::string>("--monitoring_config_file", [&](const std::string& path) {
    const auto metrics = serving::read_tf_monitoring_config(path);
    if (!metrics) throw CLI::ValidationError("--monitoring_config_file", metrics.error().message);
    options.metrics_paths.clear();
    if (*metrics) options.metrics_paths = {**metrics, "/metrics"};
  });
  flags.ignored({"--enable_batching",
                 "--batching_parameters_file",
                 "--enable_per_model_batching_parameters",
                 "--num_tflite_pools",
                 "--num_tflite_interpreters_per_pool",
                 "--skip_initialize_tpu",
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
  flags.ignored({"--enable_signature_method_name_check", "--enable_profiler", "--enable_grpc_healthcheck_service",
                 "--enable_serialization_as_tensor_content"},
                kNoSuchSetting);
  flags.channel_arguments("--grpc_channel_arguments");
  options.tls_min_version = "1.2";  // as gRPC has it
  flags.value<std::string>("--ssl_config_file", [&](const std::string& path) {
    options.tls_cert = path;
    options.tls_cert_is_ssl_config = options.tls_for_grpc_only = !path.empty();
  });
  flags.yes_or_no("--use_alts_credentials", [](bool yes) {
    if (yes) throw CLI::ValidationError("--use_alts_credentials", "is not accepted: ALTS is Google's own; --ssl_config_file enables TLS");
  });
  flags.value<std::string>("--grpc_socket_path", [](const std::string& path) {
    if (!path.empty()) throw CLI::ValidationError("--grpc_socket_path", "is not accepted: a UNIX socket is not served");
  });
}

}  // namespace serin::cli
