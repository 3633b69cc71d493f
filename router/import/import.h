// import.h: rollouts as other systems describe them -> Serin's YAML, and a plain list of what has no counterpart here.
//
//   SERIN_TRY(const auto documents, config::Node::parse_all(text, "rollout.yaml"));
//   SERIN_TRY(const Import import, import_rollout(documents, {}));
//   std::fputs(import.yaml.c_str(), stdout);
//
// Read are Argo Rollouts (Rollout with its AnalysisTemplates), Flagger (Canary with its MetricTemplates), KServe (InferenceService) and Seldon
// (SeldonDeployment; Experiment). Pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::imports {

/// What a document may not say, or may say otherwise than router.yaml does.
struct Names {
  std::string service, canary;  ///< empty: from the document
};

struct Import {
  std::string yaml;               ///< parse_spec() takes it
  std::vector<std::string> lost;  ///< "steps[3].setCanaryScale: Serin does not scale"
};

/// kUnsupported where no document is of a kind that is read; the message names those that are.
Result<Import> import_rollout(const std::vector<config::Node>& documents, const Names& names);

}  // namespace serin::imports
