// draft.h: The rollout that an importer builds, in Serin's terms. Internal to router/import.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::imports {

/// A query that rolls back when its number is above `max`.
struct Query {
  std::string name, address, query;
  double max = 0;
  std::string interval = "1m";
  int breaches = 1;
};

struct Draft {
  std::string origin;  ///< "Argo Rollouts"
  std::string service, stable, canary;
  std::string cohort_header;
  std::vector<std::string> cohort_values;
  std::vector<std::string> steps;  ///< each as in YAML: "{setWeight: 5}"
  bool blue_green = false;
  std::string shadow;  ///< percent mirrored during weight steps
  std::string errors_max, latency_p99;
  std::vector<Query> queries;
  std::vector<std::string> lost;

  void lose(std::string_view what, std::string_view why);
  /// Reports every key of `node` outside the list as lost.
  void lose_others(const config::Node& node, std::string_view where, std::initializer_list<std::string_view> known);
};

std::string print_draft(const Draft& draft);

/// "90s", "1h30m" (Go) or 90 (seconds) -> "90s"; nothing if it is absent or 0.
std::optional<std::string> read_duration(const config::Node& node);
/// Text as an unambiguous YAML string.
std::string in_quotes(std::string_view text);
/// The text under a dotted path ("metadata.name"); empty if there is none.
std::string text_at(const config::Node& node, std::string_view path);
std::optional<config::Node> find_at(const config::Node& node, std::string_view path);

// Each reads the document of its kind; `all` are the documents of the same input (templates).
Result<Draft> read_argo(const config::Node& document, const std::vector<config::Node>& all);
Result<Draft> read_flagger(const config::Node& document, const std::vector<config::Node>& all);
Result<Draft> read_kserve(const config::Node& document);
Result<Draft> read_seldon_deployment(const config::Node& document);
Result<Draft> read_seldon_experiment(const config::Node& document);

}  // namespace serin::imports
