// serve_options.h: the options of `serin serve`, whichever command line they come from (serve_flags.h, serve_as.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/serving/apis/restricted_apis.h"
#include "runtime/serving/host/tracer.h"
#include "runtime/serving/settings/dialect.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::cli {

struct ServeOptions {
  serving::Dialect dialect = serving::Dialect::kSerin;
  serving::ModelSource source;
  std::string name;            ///< name of the only model; empty: the name of its file or folder
  std::string registry_cache;  ///< folder of versions from registries; empty: the user's
  std::string registry_ca;     ///< authorities that may sign for servers of registries; empty: the system's
  std::string registry_peers_ca,
      registry_peers_name;     ///< authorities of the peers' certificates, and the name in them; empty: the system's, HOST
  std::string registry_peers;  ///< HOST:PORT[,HOST:PORT] of servers that share files of registries, and of this one; empty: none
  size_t latest_versions = 0;  ///< load only that many versions of each model, the highest, unless its settings say otherwise; 0: all
  std::string address = "127.0.0.1";
  std::optional<uint16_t> port = 8000, grpc_port = 8001, metrics_port = 8002;  ///< absent: no such port
  std::string grpc_address, metrics_address;                                   ///< empty: `address`
  std::vector<std::string> metrics_paths;                                      ///< paths of the same page at the HTTP port; empty: none
  std::vector<metrics::Summary::Quantile> metric_quantiles;                    ///< quantiles of durations on that page; empty: none
  std::vector<std::string> openvino_metrics;                 ///< names of OpenVINO Model Server's metrics that are also on that page
  std::optional<uint16_t> admin_port;                        ///< HTTP port on 127.0.0.1 for admin requests; absent: none
  bool admin_on_data_port = false;                           ///< accept admin requests at the client ports
  bool shared_memory = false;                                ///< clients may name regions of this machine's shared memory
  bool cors = false;                                         ///< pages of any origin may call TensorFlow Serving's API
  std::chrono::milliseconds longest_http{0};                 ///< limit for answering a request; 0: none
  std::chrono::milliseconds grpc_age{0}, grpc_age_grace{0};  ///< net::ServerOptions::connection_age
  std::string tokens;                                        ///< file of the clients that may call; empty: every client may
  serving::RestrictedApis restricted_http, restricted_grpc;
  int io_threads = 1;
  int threads = 0;  ///< compute threads; 0: the number of CPUs granted to the process
  static constexpr int64_t kOrdinaryBody = int64_t{64} << 20;
  std::optional<int64_t> max_body_bytes, max_message_bytes;  ///< limits for HTTP and gRPC, if set
  int64_t body_bytes = kOrdinaryBody,
          message_bytes = kOrdinaryBody;             ///< limits if not set; bodies beyond the ordinary size share a part of the memory
  int64_t response_cache_bytes = int64_t{64} << 20;  ///< allocated as answers come, for models that enable the cache
  double drain_seconds = 5;                          ///< time to serve after SIGTERM, no longer ready
  double end_seconds = 30;                           ///< after that, time for requests in progress
  double device_timeout_seconds = 60;                ///< a device that has not ended a run by then is lost; 0: never
  double exit_when_lost_seconds = 30;                ///< time to serve when no longer live; 0: without end
  std::string config_name = {};                      ///< ModelSettings::config_name
  bool strict_readiness = true;                      ///< in Triton's mode: a model that failed to load keeps the server from being ready
  bool exit_on_error = false;                        ///< end if a model does not load at the start
  std::string memory_check = "refuse";               ///< of a model that cannot fit: refuse, warn, off
  bool check = false;                                ///< load everything, report the result, end
  std::string tls_cert, tls_key, tls_client_ca;      ///< for HTTP and gRPC; no certificate: without TLS
  std::string tls_min_version = "1.3";
  bool tls_for_grpc_only = false, tls_needs_client_ca = false;
  bool tls_cert_is_ssl_config = false;  ///< tls_cert is a file in TensorFlow Serving's format that contains all three
  std::string ready_file, log_format = "text", log_level = "info", isa;
  std::string log_file;              ///< empty: stderr
  int32_t log_verbosity = 0;         ///< as /v2/logging reports it if log_level is debug
  bool log_to_stderr = false;        ///< in addition to the file
  std::string id;                    ///< name that the server reports; empty: the name of the dialect
  std::string precision = "fp32";    ///< for models whose serin.yaml does not set it
  std::string device = "cpu";        ///< likewise
  std::optional<int> instances;      ///< likewise, of runs at the same time
  std::optional<int64_t> max_batch;  ///< likewise, of rows in one run
  std::string cuda_plugin;           ///< libserin_cuda.so; empty: next to the program, if there is a driver
  std::string cuda_cache;            ///< kCudaCacheHelp
  serving::TraceOptions trace;
  std::vector<std::string> remarks;  ///< for the log: accepted flags that have no effect
};

/// Returns the exit code.
int run_serve(const ServeOptions& options);

}  // namespace serin::cli
