// eval_html.h: a report as one page that needs no other file: tables, plots in SVG, the worst rows with their pictures.
#pragma once

#include <string>

#include "runtime/cli/offline/eval_report.h"
#include "runtime/datasets/dataset.h"

namespace serin::cli {

/// `data`: for the pictures of the worst rows, if it has a column `image`.
std::string report_html(const EvalReport& report, const datasets::Dataset& data);

}  // namespace serin::cli
