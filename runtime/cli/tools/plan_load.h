// plan_load.h: the part of `serin plan` that answers a task file or a load: flags and files in, offers out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/deployment.h"
#include "runtime/planner/offers.h"
#include "runtime/planner/task.h"
#include "runtime/planner/template.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

struct LoadFlags {
  std::string task, prices, image, format = "text";
  double rps = 0;
  std::vector<std::string> slos;

  /// Whether anything asks for offers.
  bool asked() const { return !task.empty() || !prices.empty() || !image.empty() || format != "text" || rps > 0 || !slos.empty(); }
};
void add_load_flags(CLI::App& command, LoadFlags& flags);

/// The question of the file and the flags, and the models. A flag is stronger than the file, and the file than a template (`made`). `places`: those of the command line; if there are
/// none, those of the file. `precision`: of the command line; empty: none was named.
struct LoadQuestion {
  planner::Task task;
  planner::OfferQuestion wanted;
  std::vector<std::string> places;
};
Result<LoadQuestion> read_load(const LoadFlags& flags, std::vector<std::string> places, const std::string& precision,
                               const planner::Catalogue& catalogue, const planner::Template* made = nullptr);

/// The precision in which the CPU's plan is made, for what the policy names. Nothing: that of the model's settings.
std::optional<serving::Precision> cpu_precision(const planner::Policy& policy, bool multiplies_bf16);

/// Says what became of `sequence_length`.
void note_length(planner::Task& task, const planner::ModelAnswer& model);

/// In the format of --format, which is not text.
std::string print_deployment(const LoadFlags& flags, const LoadQuestion& load, const planner::Answer& answer,
                             const planner::Offers& offers);

}  // namespace serin::cli
