// serve_as_triton.cc: the command line of tritonserver.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "runtime/base/number.h"
#include "runtime/cli/serve/dialect_flags.h"

namespace serin::cli {
namespace {

using serving::Control;

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
  // Flags are read in the order of their declaration: a port that is given does not open one that is not allowed.
  const auto allow = [&](const char* flag, std::optional<uint16_t>& port) {
    flags.value<std::string>(flag, [flag, &port](const std::string& word) {
      if (!parse_yes(flag, word)) port.reset();
    });
  };
  allow("--allow-http", options.port);
  allow("--allow-grpc", options.grpc_port);
  allow("--allow-metrics", options.metrics_port);
  flags.value<int64_t>("--http-max-input-size", [&](int64_t bytes) { options.max_body_bytes = bytes; })
      ->check(CLI::Range(int64_t{1024}, int64_t{1} << 32));
  flags.io_threads("--http-thread-count");
}

void add_triton_restrictions(Flags& flags, ServeOptions& options) {
  const auto restrict_calls = [&flags](const char* flag, serving::RestrictedApis& calls, std::string_view prefix) {
    flags.each(flag, [flag, &calls, prefix](const std::string& text) {
      if (const Status added = calls.add(text, prefix); !added) throw CLI::ValidationError(flag, added.error().message);
    });
  };
  restrict_calls("--http-restricted-api", options.restricted_http, "");
  restrict_calls("--grpc-restricted-protocol", options.restricted_grpc, serving::RestrictedApis::kGrpcPrefix);
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
  flags.value<std::string>("--log-verbose", [&](const std::string& level) {  // a number, or yes or no
    const bool number = !level.empty() && std::ranges::all_of(level, [](char c) { return c >= '0' && c <= '9'; });
    options.log_verbosity = number ? parse_number<int32_t>(level).value_or(INT32_MAX) : parse_yes("--log-verbose", level);
    if (options.log_verbosity > 0) options.log_level = "debug";
  });
  flags.yes_or_no("--log-info", at_least("warning"));
  flags.yes_or_no("--log-warning", at_least("error"));
  flags.yes_or_no("--log-error", at_least("off"));
  flags.ignored({"--log-format"}, "lines begin with the time in ISO 8601; Serin's own machine-readable form is JSON");
  flags.text("--log-file", options.log_file);
}

/// "0.5:0.05,0.9:0.01": quantiles, each with its error.
std::vector<metrics::Summary::Quantile> parse_quantiles(const std::string& flag, const std::string& text) {
  std::vector<metrics::Summary::Quantile> quantiles;
  for (const std::string& item : CLI::detail::split(text, ',')) {
    const size_t colon = item.find(':');
    metrics::Summary::Quantile one{};
    const bool read = colon != std::string::npos && CLI::detail::lexical_cast(item.substr(0, colon), one.quantile) &&
                      CLI::detail::lexical_cast(item.substr(colon + 1), one.error);
    if (!read || one.quantile < 0 || one.quantile > 1 || one.error <= 0 || one.error > 1)
      throw CLI::ValidationError(flag, fmt::format("{} is not quantile:error, both from 0 to 1", item));
    quantiles.push_back(one);
  }
  return quantiles;
}

void add_triton_metrics(Flags& flags, ServeOptions& options) {
  flags.ignored({"--allow-gpu-metrics", "--allow-cpu-metrics", "--metrics-interval-ms"}, "metrics are read at each request");
  flags.all("--metrics-config", [&options](const std::vector<std::string>& all) {
    constexpr const char* kFlag = "--metrics-config";
    bool wanted = false;
    std::vector<metrics::Summary::Quantile> quantiles = {{0.5, 0.05}, {0.9, 0.01}, {0.95, 0.001}, {0.99, 0.001}, {0.999, 0.001}};
    for (const std::string& text : all) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) throw CLI::ValidationError(kFlag, text + " is no setting=value");
      const std::string setting = text.substr(0, equals), word = text.substr(equals + 1);
      if (setting == "summary_latencies") {
        wanted = word == "true";
      } else if (setting == "summary_quantiles") {
        quantiles = parse_quantiles(kFlag, word);
      } else {
        options.remarks.push_back(fmt::format("{} {} changes nothing: counters and histograms are on the page in any case", kFlag, text));
      }
    }
    if (wanted) options.metric_quantiles = quantiles;
  });
}

int64_t parse_count(const std::string& flag, const std::string& word, int64_t least) {
  int64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size() || number < least)
    throw CLI::ValidationError(flag, fmt::format("{} is no whole number of at least {}", word, least));
  return number;
}

void set_trace(ServeOptions& options, const std::string& flag, const std::string& setting, const std::string& word) {
  serving::TraceOptions& trace = options.trace;
  if (setting == "file") {
    trace.file = word;
  } else if (setting == "rate") {
    trace.rate = parse_count(flag, word, 1);
  } else if (setting == "count") {
    trace.count = parse_count(flag, word, -1);
  } else if (setting == "log-frequency") {
    trace.log_frequency = parse_count(flag, word, 0);
  } else if (setting == "level") {
    if (word != "OFF" && word != "TIMESTAMPS" && word != "TENSORS" && word != "MIN" && word != "MAX")  // the last two are names of old
      throw CLI::ValidationError(flag, word + " is none of: OFF, TIMESTAMPS, TENSORS");
    if (word == "TENSORS") options.remarks.push_back(flag + " TENSORS is ignored: times are traced, tensors are not");
    trace.on |= word == "TIMESTAMPS" || word == "MIN" || word == "MAX";
  } else if (setting == "mode") {
    if (word != "triton" && word != "opentelemetry") throw CLI::ValidationError(flag, word + " is none of: triton, opentelemetry");
    if (word == "opentelemetry") options.remarks.push_back(flag + " mode=opentelemetry is ignored: traces go to a file");
  } else {
    throw CLI::ValidationError(flag, setting + " is none of: file, rate, level, count, log-frequency, mode");
  }
}

// --trace-config [triton,|opentelemetry,]setting=word, and what came before it.
void add_triton_trace(Flags& flags, ServeOptions& options) {
  flags.each("--trace-config", [&options](const std::string& text) {
    const std::string flag = "--trace-config";
    const size_t equals = text.find('=');
    if (equals == std::string::npos) throw CLI::ValidationError(flag, text + " is no setting=value");
    std::string setting = text.substr(0, equals);
    if (setting.starts_with("opentelemetry,")) {
      options.remarks.push_back(fmt::format("{} {} is ignored: traces go to a file", flag, setting));
      return;
    }
    if (setting.starts_with("triton,")) setting.erase(0, 7);
    set_trace(options, flag, setting, text.substr(equals + 1));
  });
  for (const std::string setting : {"file", "level", "rate", "count", "log-frequency"}) {
    const std::string flag = "--trace-" + setting;
    flags.each(flag.c_str(), [&options, flag, setting](const std::string& word) { set_trace(options, flag, setting, word); });
  }
}

}  // namespace

void add_triton(Flags& flags, ServeOptions& options) {
  options.source.control = Control::kNone;
  options.source.poll = std::chrono::seconds(15);
  options.latest_versions = 1;
  options.body_bytes = options.message_bytes = INT32_MAX;  // of gRPC as there; over HTTP its limit of 64 MiB is younger than many a client
  options.admin_on_data_port = options.shared_memory = options.exit_on_error = true;
  options.drain_seconds = 0;
  const auto root = [&](const std::string& path) { options.source.roots.push_back({path}); };
  flags.each("--model-repository", root);
  flags.each("--model-store", root);
  flags.value<std::string>("--model-control-mode", [&](const std::string& word) { options.source.control = parse_control(word); });
  flags.each("--load-model", [&](const std::string& name) { options.source.load_at_start.push_back(name); });
  flags
      .value<double>("--repository-poll-secs",
                     [&](double count) {
                       if (count > 0) options.source.poll = std::max(milliseconds(count), std::chrono::milliseconds(50));
                       if (count <= 0 && options.source.control == Control::kPoll)
                         options.source.control = Control::kNone;  // they are not looked at again
                     })
      ->check(between(-1e6, 1e6));
  flags.text("--model-config-name", options.config_name);
  flags.yes_or_no("--exit-on-error", [&](bool yes) { options.exit_on_error = yes; });
  flags.value<double>("--exit-timeout-secs", [&](double count) { options.end_seconds = count; })->check(between(0, 1e6));
  flags.yes_or_no("--allow-client-shm", [&](bool yes) { options.shared_memory = yes; });
  add_triton_ports(flags, options);
  add_triton_restrictions(flags, options);
  add_triton_tls(flags, options);
  add_triton_log(flags, options);
  add_triton_trace(flags, options);
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
  const auto cache_bytes = [&options](const std::string& flag, const std::string& word) {
    options.response_cache_bytes = parse_count(flag, word, 0);
  };
  flags.each("--response-cache-byte-size", [cache_bytes](const std::string& word) { cache_bytes("--response-cache-byte-size", word); });
  flags.each("--cache-config", [&options, cache_bytes](const std::string& text) {
    constexpr std::string_view kSize = "local,size=";
    if (text.starts_with(kSize)) return cache_bytes("--cache-config", text.substr(kSize.size()));
    options.remarks.push_back("--cache-config " + text + " is ignored: answers are kept in memory (local,size=BYTES)");
  });
  flags.ignored({"--strict-model-config", "--disable-auto-complete-config"}, "a model's own file gives this information");
  flags.yes_or_no("--strict-readiness", [&options](bool yes) { options.strict_readiness = yes; });
  add_triton_metrics(flags, options);
  flags.text("--id", options.id);
  flags.milliseconds("--grpc-max-connection-age", options.grpc_age);
  flags.milliseconds("--grpc-max-connection-age-grace", options.grpc_age_grace);
  flags.ignored(
      {"--model-namespacing", "--reuse-http-port", "--reuse-grpc-port", "--http-header-forward-pattern", "--grpc-header-forward-pattern",
       "--grpc-keepalive-time", "--grpc-keepalive-timeout", "--grpc-keepalive-permit-without-calls", "--grpc-http2-max-pings-without-data",
       "--grpc-http2-min-recv-ping-interval-without-data", "--grpc-http2-max-ping-strikes", "--allow-sagemaker", "--sagemaker-port",
       "--sagemaker-safe-port-range", "--sagemaker-thread-count", "--allow-vertex-ai", "--vertex-ai-port", "--vertex-ai-thread-count",
       "--vertex-ai-default-model"},
      kNoSuchSetting);
}

// Triton's certificates are for gRPC, where the switch is on: neither does the one without the other say what is meant.
void check_triton(const ServeOptions& options) {
  if (options.tls_for_grpc_only && options.tls_cert.empty())
    throw CLI::ValidationError("--grpc-use-ssl", "needs --grpc-server-cert and --grpc-server-key");
  if (options.tls_needs_client_ca && options.tls_client_ca.empty())
    throw CLI::ValidationError("--grpc-use-ssl-mutual", "needs --grpc-root-cert");
  if (!options.tls_cert.empty() && !options.tls_for_grpc_only)
    throw CLI::ValidationError("--grpc-server-cert", "needs --grpc-use-ssl=true");
}

}  // namespace serin::cli
