#include "runtime/cli/tools/plan_corrections.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/offline/file_digest.h"
#include "runtime/cli/offline/model_place.h"
#include "runtime/cli/tools/observed_figures.h"

namespace serin::cli {
namespace {

constexpr double kFewestRuns = 20;          // a mean of fewer says more about the first runs of a server than about the model
constexpr double kLeast = 0.1, kMost = 10;  // factors beyond are no error of a prediction: the plan is of another model, machine or size

Result<std::string> model_digest(const planner::ModelAnswer& model) {
  SERIN_TRY(const auto files, files_of({.file = model.path, .steps = {}, .settings = {}}));
  return digest_of(files);
}

}  // namespace

Status correct_times(const planner::Calibration& calibration, planner::Answer& answer) {
  if (!calibration.corrects()) return {};
  for (planner::ModelAnswer& model : answer.models) {
    SERIN_TRY(const std::string digest, model_digest(model));
    calibration.correct(model, digest);
  }
  return {};
}

Status keep_times(planner::Observed& observed, const planner::Answer& answer, planner::Calibration& calibration) {
  for (const planner::ObservedRuns& runs : observed.runs) {
    const auto model = std::ranges::find_if(answer.models, [&](const planner::ModelAnswer& each) { return name_of(each) == runs.model; });
    if (model == answer.models.end()) continue;
    planner::Correction correction{.digest = {},
                                   .model = model->path,
                                   .threads = model->threads,
                                   .rows = runs.rows,
                                   .planned = runs.planned,
                                   .measured = runs.measured,
                                   .runs = runs.runs,
                                   .source = observed.url};
    const double factor = correction.factor();
    if (runs.runs < kFewestRuns) {
      observed.notes.push_back(fmt::format("{}: nothing is kept of {:.0f} runs, fewer than {:.0f}", runs.model, runs.runs, kFewestRuns));
    } else if (factor < kLeast || factor > kMost) {
      observed.notes.push_back(
          fmt::format("{}: a factor of {:.3g} is not kept: the server has another model, machine or size of requests", runs.model, factor));
    } else {
      SERIN_TRY(correction.digest, model_digest(*model));
      calibration.keep(std::move(correction));
      observed.notes.push_back(fmt::format("{}: kept: {:.0f} runs took {:.3g} times as long as planned; later plans count that in",
                                           runs.model, runs.runs, factor));
    }
  }
  if (observed.runs.empty()) observed.notes.emplace_back("--keep: nothing is kept, because no run could be compared with its plan");
  return {};
}

}  // namespace serin::cli
