// serve_as_tfserving.cc: the command lines of tensorflow_model_server and of OpenVINO Model Server, which took its flags over.

#include <cstdlib>

#include "runtime/base/config.h"
#include "runtime/cli/dialect_flags.h"
#include "runtime/serving/tfserving_config.h"

namespace serin::cli {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

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

}  // namespace

void add_tfserving(Flags& flags, ServeOptions& options, OneModel& model) {
  options.latest_versions = 1;
  options.body_bytes = options.message_bytes = INT32_MAX;
  options.port.reset();
  options.grpc_port = 8500;
  options.metrics_port.reset();
  options.metrics_paths = {serving::kTfMetricsPath, "/metrics"};  // the latter is where KServe looks
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
    model.path.clear();  // flags are read in the order of their declaration: it goes before --model_base_path and the environment's
  });
  flags.poll_seconds("--file_system_poll_wait_seconds");
  flags.io_threads("--rest_api_num_threads");
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
  flags.ignored(
      {"--rest_api_timeout_in_ms", "--grpc_channel_arguments", "--enable_signature_method_name_check", "--enable_profiler",
       "--enable_grpc_healthcheck_service", "--enable_serialization_as_tensor_content", "--allow_version_labels_for_unavailable_models",
       "--force_allow_any_version_labels_for_absent_models", "--model_config_file_poll_wait_seconds"},
      kNoSuchSetting);
  options.tls_min_version = "1.2";  // as gRPC has it
  flags.value<std::string>("--ssl_config_file", [&](const std::string& path) {
    options.tls_cert = path;
    options.tls_cert_is_ssl_config = options.tls_for_grpc_only = !path.empty();
  });
  flags.yes_or_no("--use_alts_credentials", [](bool yes) {
    if (yes)
      throw CLI::ValidationError("--use_alts_credentials", "is not taken: ALTS is Google's own; TLS is asked for with --ssl_config_file");
  });
  flags.value<std::string>("--grpc_socket_path", [](const std::string& path) {
    if (!path.empty()) throw CLI::ValidationError("--grpc_socket_path", "is not taken: a UNIX socket is not served");
  });
}

void add_ovms(Flags& flags, ServeOptions& options, OneModel& model) {
  options.latest_versions = 1;
  options.body_bytes = options.message_bytes = int64_t{1} << 30;
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
  flags.poll_seconds("--file_system_poll_wait_seconds");
  flags.value<std::string>("--target_device", [&](const std::string& device) { options.device = device == "CPU" ? "cpu" : "auto"; });
  flags.value<std::string>(
      "--log_level", [&](const std::string& level) { options.log_level = level == "TRACE" ? "debug" : CLI::detail::to_lower(level); });
  flags.yes_or_no("--metrics_enable", [&](bool yes) { options.metrics_paths.assign(yes ? 1 : 0, "/metrics"); });
  flags.io_threads("--rest_workers");
  flags.ignored({"--grpc_workers", "--batch_size", "--shape", "--layout", "--mean", "--scale", "--nireq", "--plugin_config", "--cache_dir",
                 "--cpu_extension", "--model_version_policy", "--stateful", "--idle_sequence_cleanup", "--low_latency_transformation",
                 "--max_sequence_number", "--sequence_cleaner_poll_wait_minutes", "--custom_node_resources_cleaner_interval_seconds"},
                kOneEngine);
  options.log_to_stderr = true;
  flags.text("--log_path", options.log_file);
  flags.ignored({"--metrics_list", "--grpc_channel_arguments", "--grpc_max_threads", "--grpc_memory_quota", "--allow_credentials",
                 "--allowed_headers", "--allowed_methods", "--allowed_origins", "--trace_path", "--verbose_response", "--color_format",
                 "--allowed_local_media_path", "--allowed_media_domains"},
                kNoSuchSetting);
  flags.ignored({"--api_key_file"},
                "it is for generation under /v3, which is not served; who may call what is asked for with --tokens FILE");
  flags.refused(
      {"--pull", "--source_model", "--model_repository_path", "--list_models", "--configure", "--add_to_config", "--remove_from_config",
       "--task", "--gguf_filename", "--source_loras", "--overwrite_models", "--extra_quantization_params"},
      "models are served from where --model_path or --config_path say, not fetched or configured");
}

}  // namespace serin::cli
