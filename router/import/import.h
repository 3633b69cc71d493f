// import.h: Converts other systems' rollouts to Serin's YAML, with a list of the parts that have no counterpart.
//
//   SERIN_TRY(const auto documents, config::Node::parse_all(text, "rollout.yaml"));
//   SERIN_TRY(const Import import, import_rollout(documents, {}));
//   std::fputs(import.yaml.c_str(), stdout);
//
// It reads Argo Rollouts (Rollout with its AnalysisTemplates), Flagger (Canary with its MetricTemplates), KServe (InferenceService) and
// Seldon (SeldonDeployment; Experiment). Pure.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::imports {

/// Names that a document may lack, or give differently from router.yaml.
struct Names {
  std::string service, canary;  ///< empty: from the document
};

struct Import {
  std::string yaml;               ///< input for parse_spec()
  std::vector<std::string> lost;  ///< "steps[3].setCanaryScale: Serin does not scale"
};

/// kUnsupported if no document is of a supported kind; the message names the supported kinds.
Result<Import> import_rollout(const std::vector<config::Node>& documents, const Names& names);

}  // namespace serin::imports
