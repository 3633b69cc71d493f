// serve_as_ovms.cc: the command line of OpenVINO Model Server, which took over TensorFlow Serving's flags.

#include <algorithm>

#include "runtime/cli/serve/dialect_flags.h"
#include "runtime/serving/host/openvino_metrics.h"
#include "runtime/serving/settings/ovms_config.h"

namespace serin::cli {
namespace {

/// At /metrics of the HTTP port. `names`: empty: those that there are without being asked for.
void export_metrics(ServeOptions& options, std::vector<std::string> names) {
  for (std::string& name : names) {
    name = CLI::detail::trim_copy(name);
    if (!serving::is_openvino_metric(name)) throw CLI::ValidationError("--metrics_list", name + " is no metric of OpenVINO Model Server");
  }
  options.metrics_paths = {"/metrics"};
  options.openvino_metrics = names.empty() ? serving::usual_openvino_metrics() : std::move(names);
}

}  // namespace

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
    auto config = serving::read_ovms_config(path);
    if (!config) throw CLI::ValidationError("--config_path", config.error().message);
    serve_list(options, path, std::move(config->models), serving::read_ovms_models);
    if (config->metrics) export_metrics(options, config->metrics_list);
  });
  flags.value<std::string>("--model_version_policy", [&](const std::string& text) {
    auto policy = serving::parse_ovms_policy(text);
    if (!policy) throw CLI::ValidationError("--model_version_policy", policy.error().message);
    model.versions = std::move(*policy);
  });
  for (const char* flag : {"--layout", "--mean", "--scale", "--color_format"}) {
    flags.value<std::string>(flag, [&options, flag](const std::string& text) {
      if (const Status none = serving::check_ovms_step(flag + 2, text); !none) throw CLI::ValidationError(flag, none.error().message);
      options.remarks.push_back(fmt::format("{} changes nothing: {}", flag, kOneEngine));
    });
  }
  flags.yes_or_no("--stateful", [](bool yes) {
    if (yes)
      throw CLI::ValidationError("--stateful", "is not accepted: state is kept for models whose serin.yaml enables it (`sequences`)");
  });
  flags.text("--rest_bind_address", options.address);
  flags.text("--grpc_bind_address", options.grpc_address);
  flags.poll_seconds("--file_system_poll_wait_seconds");
  flags.value<std::string>("--target_device", [&](const std::string& device) { options.device = device == "CPU" ? "cpu" : "auto"; });
  flags.value<std::string>(
      "--log_level", [&](const std::string& level) { options.log_level = level == "TRACE" ? "debug" : CLI::detail::to_lower(level); });
  flags.yes_or_no("--metrics_enable", [&](bool yes) {
    if (yes) export_metrics(options, {});
  });
  flags.value<std::string>("--metrics_list", [&](const std::string& names) {
    if (!options.metrics_paths.empty()) export_metrics(options, CLI::detail::split(names, ','));
  });
  flags.io_threads("--rest_workers");
  flags.channel_arguments("--grpc_channel_arguments");
  flags.ignored({"--grpc_workers", "--batch_size", "--shape", "--nireq", "--plugin_config", "--cache_dir", "--cpu_extension",
                 "--idle_sequence_cleanup", "--low_latency_transformation", "--max_sequence_number", "--sequence_cleaner_poll_wait_minutes",
                 "--custom_node_resources_cleaner_interval_seconds"},
                kOneEngine);
  options.log_to_stderr = true;
  flags.text("--log_path", options.log_file);
  flags.ignored({"--grpc_max_threads", "--grpc_memory_quota", "--allow_credentials", "--allowed_headers", "--allowed_methods",
                 "--allowed_origins", "--trace_path", "--verbose_response", "--allowed_local_media_path", "--allowed_media_domains"},
                kNoSuchSetting);
  flags.ignored({"--api_key_file"}, "it is for generation under /v3, which is not served; use --tokens FILE for access control");
  flags.refused(
      {"--pull", "--source_model", "--model_repository_path", "--list_models", "--configure", "--add_to_config", "--remove_from_config",
       "--task", "--gguf_filename", "--source_loras", "--overwrite_models", "--extra_quantization_params"},
      "models are served from --model_path or --config_path, not downloaded or configured");
}

void check_ovms(const ServeOptions& options) {
  if (!options.metrics_paths.empty() && !options.port)
    throw CLI::ValidationError("--metrics_enable", "needs --rest_port: metrics are read there");
}

}  // namespace serin::cli
