// tune_report.h: what `serin tune` has found, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/tune/trial.h"

namespace serin::cli {

/// A precision, and whether the answers are good enough in it.
struct JudgedPrecision {
  std::string precision;
  std::vector<std::pair<Requirement, double>> values;
  std::string why;  ///< why it is out; empty: it holds
};

struct TuneReport {
  std::string model, goal, data;
  double rate = 0;  ///< requests a second that are wanted; 0: as many as possible
  std::vector<JudgedPrecision> precisions;
  std::vector<Trial> trials;
  std::optional<size_t> chosen;  ///< of `trials`

  /// Chooses the cheapest trial that holds. With a rate: the least processor time for an answer; else the most answers a second. Of those
  /// within 10 % of the best, and then within 10 % of the least memory, it takes the first.
  void choose();
};

/// Keys for serin.yaml.
std::string settings_of(const Choice& choice, bool samples);
std::string tune_text(const TuneReport& report, bool samples);
/// Schema serin.tune/1.
std::string tune_json(const TuneReport& report);

}  // namespace serin::cli
