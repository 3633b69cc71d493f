// observed.h: figures of a server that runs, next to those that were planned for it.
#pragma once

#include <string>
#include <vector>

namespace serin::planner {

struct Observation {
  std::string what;  ///< "digits:2 weights"
  double planned = 0, measured = 0;
  enum class Unit : uint8_t { kBytes, kSeconds } unit = Unit::kBytes;
  bool at_most = true;  ///< the plan is an upper bound; else an estimate

  /// A bound that was too low.
  bool wrong() const { return at_most && measured > planned; }
};

struct Observed {
  std::string url;
  std::vector<Observation> lines;
  std::vector<std::string> notes;  ///< what could not be compared, and why
};

/// A table; the line of a plan that was too low says so.
std::string observed_text(const Observed& observed);

}  // namespace serin::planner
