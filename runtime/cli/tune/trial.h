// trial.h: serves a model with other settings, in a process of its own, and measures it under load.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/offline/model_place.h"
#include "runtime/cli/tune/goal.h"

namespace serin::cli {

/// One way to serve a model.
struct Choice {
  std::string precision = "fp32";
  int64_t max_batch = 1;
  int instances = 1;
};

/// Results of a load.
struct Measurement {
  std::array<double, 4> latency_ms{};  ///< p50, p90, p99, p999
  double per_second = 0;               ///< answers
  double cpu_ms = 0;                   ///< processor time of the server for one answer
  uint64_t memory_bytes = 0;           ///< the most that the server had resident
  uint64_t sent = 0, failed = 0;
  int clients = 0;  ///< that wait for their answers; 0: requests came at a rate

  double latency(std::string_view percentile) const;
};

struct Traffic {
  double rate = 0;  ///< requests a second; 0: as many as hold the goal
  double seconds = 3;
  std::string data;  ///< of `serin load`; empty: random numbers
};

struct Trial {
  Choice choice;
  std::optional<Measurement> measured;
  std::string why;  ///< why it does not hold the goal; empty: it does
};

/// The model with the settings of a choice in a folder that `serin serve` reads: `folder`/<name>/<version>. Its files are links, or copies.
Status lay_out(const ModelPlace& place, const std::string& name, const Choice& choice, const std::string& samples,
               const std::string& folder, bool copies);

/// Starts a server, sends requests and ends it. `work`: a folder that is there. Needs block_end_signals(), and throws ReleaseInterrupted.
Result<Trial> try_choice(const ModelPlace& place, const std::string& name, const Choice& choice, const std::string& samples,
                         const Goal& goal, const Traffic& traffic, const std::string& work);

}  // namespace serin::cli
