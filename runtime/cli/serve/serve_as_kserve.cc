// serve_as_kserve.cc: the command line that KServe's own model servers share, and Paddle's, which is one of them.

#include "runtime/cli/serve/dialect_flags.h"

namespace serin::cli {

void add_kserve(Flags& flags, ServeOptions& options, OneModel& model) {
  options.port = 8080;
  options.body_bytes = INT32_MAX;
  options.grpc_port = 8081;
  options.metrics_port.reset();
  options.metrics_paths = {"/metrics"};
  model.name = "model";
  flags.port("--http_port", options.port);
  flags.port("--grpc_port", options.grpc_port);
  flags.text("--model_name", model.name);
  flags.text("--model_dir", model.path);
  flags.threads("--max_threads");
  flags.ignored(
      {"--workers", "--max_asyncio_workers", "--nthread", "--enable_grpc", "--enable_docs_url", "--enable_latency_logging",
       "--configure_logging", "--log_config_file", "--access_log_format", "--enable_predictor", "--predictor_host", "--predictor_protocol",
       "--predictor_request_timeout_seconds", "--grpc_max_send_message_length", "--grpc_max_receive_message_length"},
      kNoSuchSetting);
}

void add_paddle(Flags& flags, ServeOptions& options, OneModel& model) {
  add_kserve(flags, options, model);
  options.grpc_port.reset();
  flags.port("--port", options.port);
  flags.text("--model", model.path);
  flags.threads("--thread");
  flags.ignored({"--gpu_ids", "--use_trt", "--use_mkl", "--ir_optim", "--mem_optim", "--max_body_size", "--op_num", "--op_max_batch",
                 "--precision_mode"},
                kOneEngine);
}

}  // namespace serin::cli
