// commands.h: the options and the run function of each subcommand.
//
// main.cc binds the flags, so that CLI11 (5 s to compile) is included once. The functions return the exit code (README, "Exit codes"):
//   0 success; 1 a negative result; 2 usage or configuration; 3 cannot run; 5 server unreachable
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/metrics.h"
#include "runtime/serving/apis/restricted_apis.h"
#include "runtime/serving/host/tracer.h"
#include "runtime/serving/settings/dialect.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::cli {

enum ExitCode : int {
  kYes = 0,
  kNo = 1,
  kUsage = 2,
  kCannotRun = 3,
  kRolledBack = 3,
  kInconclusive = 4,
  kUnreachable = 5,
  kInterrupted = 130
};

inline constexpr const char* kCudaCacheHelp =
    "folder where measurements of a device's kernels are kept; default: serin in $XDG_CACHE_HOME or in ~/.cache; none: nowhere";

struct EngineFlags {
  int threads = 1;
  std::string isa;             ///< empty: the best available
  std::string device = "cpu";  ///< or cuda, or auto
  std::string cuda_plugin;     ///< libserin_cuda.so; empty: next to the program, if there is a driver
  std::string cuda_cache;      ///< kCudaCacheHelp
  std::string precision = "fp32";
  std::string samples;  ///< folder of inputs for `--precision auto` and for the ranges of int8; empty: made-up inputs
  std::vector<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  ///< --dim seq=128
};

struct BenchOptions {
  std::string model;
  EngineFlags engine;
  int64_t batch = 1;
  double seconds = 3;
  bool on_request = false;  ///< run again for each line on standard input
  bool profile = false;     ///< then report the time of each step
  bool json = false;
};
int run_bench(const BenchOptions& options);

struct CheckOptions {
  std::string model, folder;
  EngineFlags engine;
  double rtol = 1e-4, atol = 1e-5;            ///< |a-b| <= atol*max|b| + rtol*|b|; see compare.h
  std::map<std::string, double> output_atol;  ///< replaces atol, by the output's name
  bool absolute_atol = false;                 ///< |a-b| <= atol + rtol*|b|, as in NumPy and ONNX's own test data
  bool json = false;
};
int run_check(const CheckOptions& options);

struct InspectOptions {
  std::string model;
  EngineFlags engine;
  bool explain = false;
  bool json = false;
};
int run_inspect(const InspectOptions& options);

struct ServeOptions {
  serving::Dialect dialect = serving::Dialect::kSerin;
  serving::ModelSource source;
  std::string name;            ///< name of the only model; empty: the name of its file or folder
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
  bool check = false;                                ///< load everything, report the result, end
  std::string tls_cert, tls_key, tls_client_ca;      ///< for HTTP and gRPC; no certificate: without TLS
  std::string tls_min_version = "1.3";
  bool tls_for_grpc_only = false, tls_needs_client_ca = false;
  bool tls_cert_is_ssl_config = false;  ///< tls_cert is a file in TensorFlow Serving's format that contains all three
  std::string ready_file, log_format = "text", log_level = "info", isa;
  std::string log_file;            ///< empty: stderr
  int32_t log_verbosity = 0;       ///< as /v2/logging reports it if log_level is debug
  bool log_to_stderr = false;      ///< in addition to the file
  std::string id;                  ///< name that the server reports; empty: the name of the dialect
  std::string precision = "fp32";  ///< for models whose serin.yaml does not set it
  std::string device = "cpu";      ///< likewise
  std::string cuda_plugin;         ///< libserin_cuda.so; empty: next to the program, if there is a driver
  std::string cuda_cache;          ///< kCudaCacheHelp
  serving::TraceOptions trace;
  std::vector<std::string> remarks;  ///< for the log: accepted flags that have no effect
};
int run_serve(const ServeOptions& options);

/// PEM files for a server whose URL is https.
struct TlsFlags {
  std::string ca;         ///< authorities that may sign the server's certificate; empty: those that the system trusts
  std::string cert, key;  ///< client certificate shown to the server; empty: none
};

struct LoadOptions {
  std::string url, model, version, data;
  double rate = 0;  ///< requests per second in an open loop; 0: closed loop
  int concurrency = 1;
  double seconds = 10;
  int64_t batch = 1;
  double timeout_seconds = 10;
  TlsFlags tls;
  bool json = false;
};
int run_load(const LoadOptions& options);

struct RouteOptions {
  std::string config;
  double drain_seconds = 5;
  std::string ready_file, log_format = "text", log_level = "info";
  bool check = false;      ///< read the configuration, report what is wrong, end
  bool take_over = false;  ///< take over from the router that runs on the same store, if there is one
};
int run_route(const RouteOptions& options);

/// Address of the router's admin API, and the caller's credentials.
struct AdminFlags {
  std::string address = "127.0.0.1:8081";  ///< or https://HOST:PORT
  std::string token_file;                  ///< file with the bearer token; empty: SERIN_TOKEN of the environment, or none
  TlsFlags tls;
};

struct RolloutOptions {
  std::string action;  ///< start, status, watch, set-weight, pause, resume, promote, abort, undo, retry, history, explain
  AdminFlags admin;
  std::string service;                                   ///< or, for explain, the ID of a rollout
  std::string canary, steps, spec_file, weight, reason;  ///< weights as text: they are exact, and refused if they are not
  size_t limit = 100;                                    ///< entries of history
  bool wait = false, json = false;
  bool verify = false;  ///< verify the digests of history
  std::string noted;    ///< a digest that history must still contain
};
int run_rollout(const RolloutOptions& options);

// The following commands of `serin rollout` work on files alone, without a router.
struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};
int run_validate(const ValidateOptions& options);

struct ImportOptions {
  std::string file, service, canary;  ///< names: empty if the file contains them
};
int run_import(const ImportOptions& options);
int run_schema();

struct SimulateOptions {
  std::string spec, log;
  size_t runs = 100;
  uint64_t most_requests = 2'000'000;  ///< of one rollout
  bool json = false;
};
int run_simulate(const SimulateOptions& options);

struct DrillOptions {
  AdminFlags admin;
  std::string service, version;  ///< the version whose endpoint is `listen`
  std::string listen, forward;   ///< ADDRESS:PORT; http:// or https://HOST:PORT of a server that runs the stable version
  std::string faults = "errors,slow,nan";
  double errors = 0.5;    ///< share of answers that fail
  double delay = 0.25;    ///< delay in seconds, added to every answer
  int weight = 10;        ///< percent; during a fault, twice that
  int baseline = 1000;    ///< answers of the stable version before latency is judged
  double patience = 600;  ///< time limit in seconds for each part
};
int run_drill(const DrillOptions& options);

}  // namespace serin::cli
