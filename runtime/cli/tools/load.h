// load.h: `serin load` sends steady traffic to a model and reports latencies.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/cli/tls_flags.h"

namespace serin::cli {

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

/// Returns the exit code.
int run_load(const LoadOptions& options);

}  // namespace serin::cli
