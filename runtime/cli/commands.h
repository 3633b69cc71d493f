// commands.h: what each subcommand is asked. One struct and one function for each; main.cc binds the flags, so that CLI11 (5 s to compile) is included once.
//
// The functions return the exit code (README, "Exit codes"): 0 yes; 1 the command's own no; 2 usage or configuration; 3 cannot run; 5 server unreachable.
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
  std::string isa;             ///< empty: the best there is
  std::string device = "cpu";  ///< or cuda, or auto
  std::string cuda_plugin;     ///< libserin_cuda.so; empty: beside the program, where there is a driver
  std::string cuda_cache;      ///< kCudaCacheHelp
  std::string precision = "fp32";
  std::string samples;  ///< a folder of inputs that `--precision auto` decides on and int8 takes its ranges from; empty: made-up ones
  std::vector<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  ///< --dim seq=128
};

struct BenchOptions {
  std::string model;
  EngineFlags engine;
  int64_t batch = 1;
  double seconds = 3;
  bool on_request = false;  ///< again for each line on standard input
  bool profile = false;     ///< then where the time goes, step by step
  bool json = false;
};
int run_bench(const BenchOptions& options);

struct CheckOptions {
  std::string model, folder;
  EngineFlags engine;
  double rtol = 1e-4, atol = 1e-5;            ///< |a-b| <= atol*max|b| + rtol*|b|; see compare.h
  std::map<std::string, double> output_atol;  ///< in place of atol, by the output's name
  bool absolute_atol = false;                 ///< |a-b| <= atol + rtol*|b|, as NumPy and ONNX's own test data have it
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
  std::string name;            ///< of the only model that lies there; empty: as its file or its folder says
  size_t latest_versions = 0;  ///< so many of each model, the highest, where its settings do not say; 0: all
  std::string address = "127.0.0.1";
  std::optional<uint16_t> port = 8000, grpc_port = 8001, metrics_port = 8002;  ///< absent: there is none
  std::string grpc_address, metrics_address;                                   ///< empty: `address`
  std::vector<std::string> metrics_paths;                    ///< of the same page at the HTTP port; empty: it is not there
  std::vector<metrics::Summary::Quantile> metric_quantiles;  ///< of durations, on that page; empty: none
  std::vector<std::string> openvino_metrics;                 ///< names of OpenVINO Model Server's that are on that page, too
  std::optional<uint16_t> admin_port;         ///< of HTTP, on 127.0.0.1: where orders to the server are taken; absent: nowhere
  bool admin_on_data_port = false;            ///< or at the ports of clients
  bool shared_memory = false;                 ///< clients may name regions of this machine's memory
  bool cors = false;                          ///< pages of any origin may ask TensorFlow Serving's API
  std::chrono::milliseconds longest_http{0};  ///< until a request is answered; 0: any
  std::chrono::milliseconds grpc_age{0}, grpc_age_grace{0};  ///< net::ServerOptions::connection_age
  std::string tokens;                                        ///< a file of who may call; empty: everybody
  serving::RestrictedApis restricted_http, restricted_grpc;
  int io_threads = 1;
  int threads = 0;  ///< compute threads; 0: what is granted to the process
  static constexpr int64_t kOrdinaryBody = int64_t{64} << 20;
  std::optional<int64_t> max_body_bytes, max_message_bytes;  ///< of HTTP and gRPC, where somebody says
  int64_t body_bytes = kOrdinaryBody,
          message_bytes = kOrdinaryBody;             ///< where nobody does; beyond an ordinary body they share a part of the memory
  int64_t response_cache_bytes = int64_t{64} << 20;  ///< taken as answers come, of models that ask for it
  double drain_seconds = 5;                          ///< served on after SIGTERM, not ready any more
  double end_seconds = 30;                           ///< after that, for what is under way
  double device_timeout_seconds = 60;                ///< a device that has not ended a run by then is lost; 0: never
  double exit_when_lost_seconds = 30;                ///< served on, not live any more; 0: for ever
  std::string config_name = {};                      ///< ModelSettings::config_name
  bool strict_readiness = true;                      ///< in Triton's place: what did not load keeps the server from being ready
  bool exit_on_error = false;                        ///< end where a model does not load at the start
  bool check = false;                                ///< load everything, say what came of it, end
  std::string tls_cert, tls_key, tls_client_ca;      ///< of HTTP and gRPC; no certificate: in the clear
  std::string tls_min_version = "1.3";
  bool tls_for_grpc_only = false, tls_needs_client_ca = false;
  bool tls_cert_is_ssl_config = false;  ///< tls_cert is a file as TensorFlow Serving has it, with all three in it
  std::string ready_file, log_format = "text", log_level = "info", isa;
  std::string log_file;            ///< empty: stderr
  int32_t log_verbosity = 0;       ///< as /v2/logging tells it, where log_level is debug
  bool log_to_stderr = false;      ///< beside the file
  std::string id;                  ///< what the server calls itself; empty: as the dialect does
  std::string precision = "fp32";  ///< of models whose serin.yaml does not say
  std::string device = "cpu";      ///< the same
  std::string cuda_plugin;         ///< libserin_cuda.so; empty: beside the program, where there is a driver
  std::string cuda_cache;          ///< kCudaCacheHelp
  serving::TraceOptions trace;
  std::vector<std::string> remarks;  ///< for the log: flags that were understood and change nothing
};
int run_serve(const ServeOptions& options);

/// Files in PEM, for a server whose URL is https.
struct TlsFlags {
  std::string ca;         ///< who may sign for it; empty: whom the system believes
  std::string cert, key;  ///< shown to it; empty: none
};

struct LoadOptions {
  std::string url, model, version, data;
  double rate = 0;  ///< requests per second, open loop; 0: closed loop
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
  bool check = false;      ///< read the configuration, say what is wrong, end
  bool take_over = false;  ///< from the router that runs on the same store, where there is one
};
int run_route(const RouteOptions& options);

/// The router's admin API, and who asks it.
struct AdminFlags {
  std::string address = "127.0.0.1:8081";  ///< or https://HOST:PORT
  std::string token_file;                  ///< holds the bearer token; empty: SERIN_TOKEN of the environment, or none
  TlsFlags tls;
};

struct RolloutOptions {
  std::string action;  ///< start, status, watch, set-weight, pause, resume, promote, abort, undo, retry, history, explain
  AdminFlags admin;
  std::string service;                                   ///< or, to explain, the ID of a rollout
  std::string canary, steps, spec_file, weight, reason;  ///< weights as text: they are exact, and refused where they are not
  size_t limit = 100;                                    ///< of history
  bool wait = false, json = false;
  bool verify = false;  ///< the digests of history
  std::string noted;    ///< a digest that must still be in it
};
int run_rollout(const RolloutOptions& options);

// What `serin rollout` does with files alone, without a router.
struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};
int run_validate(const ValidateOptions& options);

struct ImportOptions {
  std::string file, service, canary;  ///< names: empty where the file says them
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
  std::string listen, forward;   ///< ADDRESS:PORT; http:// or https://HOST:PORT of a server that runs stable
  std::string faults = "errors,slow,nan";
  double errors = 0.5;    ///< share of answers
  double delay = 0.25;    ///< seconds, of every answer
  int weight = 10;        ///< percent, and twice that beside a fault
  int baseline = 1000;    ///< answers of stable before latency is judged
  double patience = 600;  ///< seconds for each part
};
int run_drill(const DrillOptions& options);

}  // namespace serin::cli
