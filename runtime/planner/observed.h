// observed.h: figures of servers that run, next to those that were planned for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace serin::planner {

struct Observation {
  std::string what;               ///< "digits:2 weights"
  std::optional<double> planned;  ///< nothing: a plan does not say it
  double measured = 0;
  enum class Unit : uint8_t { kBytes, kSeconds, kShare, kPerSecond, kRows } unit = Unit::kBytes;
  bool at_most = true;  ///< the plan is an upper bound; else an estimate

  /// A bound that was too low.
  bool wrong() const { return at_most && planned && measured > *planned; }
};

/// Runs of a model that had a calibrated plan.
struct ObservedRuns {
  std::string model;   ///< "digits:2"
  double rows = 0;     ///< of a run, on average
  double planned = 0;  ///< seconds of a run, without corrections
  double measured = 0;
  double runs = 0;
};

struct Observed {
  std::string url;
  std::string window;  ///< "5m": the time that the figures are of; empty: since the server's start
  std::vector<Observation> lines;
  std::vector<ObservedRuns> runs;
  std::vector<std::string> notes;  ///< what could not be compared, and why
};

/// A table; the line of a plan that was too low says so.
std::string observed_text(const Observed& observed);

}  // namespace serin::planner
