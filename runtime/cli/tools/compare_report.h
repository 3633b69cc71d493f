// compare_report.h: the report of `serin compare`, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/tools/compare_versions.h"
#include "runtime/cli/tools/recorded_inputs.h"

namespace serin::cli {

struct ComparedVersions {
  Pairing pairing;
  std::vector<steps::StepDifference> steps;
  std::vector<ComparedSet> sets;
  std::vector<UnfitRequest> unfit;
  bool recorded = false;

  bool match() const;
};

/// Of many recorded requests the text shows those in full whose outputs differ most; the JSON has all.
void print_text(const ComparedVersions& compared);
void print_json(const ComparedVersions& compared);

}  // namespace serin::cli
