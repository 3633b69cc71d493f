#include "runtime/cli/tools/plan_load.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

/// The folder of that model in a folder of several; otherwise the place itself.
std::vector<std::string> only_named(std::vector<std::string> places, const std::string& name) {
  std::error_code error;
  for (std::string& place : places)
    if (!name.empty() && fs::is_directory(fs::path(place) / name, error)) place = (fs::path(place) / name).string();
  return places;
}

/// What a template says of the load and of what a pod may have.
void take_demand(const planner::Template& made, LoadQuestion& load) {
  planner::Demand& demand = load.task.demand;
  if (demand.rps <= 0) demand.rps = made.demand.rps;
  if (demand.slos.empty()) demand.slos = made.demand.slos;
  load.task.notes.insert(load.task.notes.end(), made.notes.begin(), made.notes.end());
  load.wanted.whole_cards = made.gpu_count.value_or(0) > 0;
  const double threshold = load.task.policy.memory_threshold;
  const std::string part = threshold < 1 ? fmt::format("{:.4g} % of ", 100 * threshold) : std::string();
  if (made.memory) load.wanted.host_memory = std::pair(made.memory->first, fmt::format("{}memory ({})", part, made.memory->second));
}

}  // namespace

void add_load_flags(CLI::App& command, LoadFlags& flags) {
  command.add_option("--task", flags.task, "task file: model, policy and load; every key is honoured, or named as ignored");
  command.add_option("--rps", flags.rps, "requests of one row each second that must be answered: replicas, cost, autoscaling")
      ->check(CLI::Range(1e-6, 1e9));
  command.add_option("--slo", flags.slos, "latency of a share of the requests, e.g. p99<=50ms; can be given several times")
      ->allow_extra_args(false);
  command.add_option("--prices", flags.prices, "file of prices of devices, cores and memory: cost of a million answers");
  command.add_option("--format", flags.format, "text, or only what starts the chosen offer: kubernetes, docker")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "kubernetes", "docker"}));
  command.add_option("--image", flags.image,
                     "image of --format, with a tag or digest; default: serin of this version, for cards serin:cuda");
}

Result<LoadQuestion> read_load(const LoadFlags& flags, std::vector<std::string> places, const std::string& precision,
                               const planner::Catalogue& catalogue, const planner::Template* made) {
  LoadQuestion load;
  if (!flags.task.empty()) {
    SERIN_TRY(load.task, planner::read_task(flags.task, catalogue));
  }
  planner::Task& task = load.task;
  if (places.empty() && task.models.empty()) {
    const std::string named = task.model_name.empty() ? "" : fmt::format(" task.model_name is '{}', which is no file:", task.model_name);
    return invalid(fmt::format("{}:{} name the model's file or folder as an argument, or as model: in the file", flags.task, named));
  }
  if (!places.empty() && !task.models.empty()) task.notes.push_back({"model", "ignored: the command line names models"});
  if (made) take_demand(*made, load);
  load.places = only_named(places.empty() ? task.models : std::move(places), task.model_name);
  if (flags.rps > 0) task.demand.rps = flags.rps;
  if (!flags.slos.empty()) task.demand.slos.clear();
  for (const std::string& text : flags.slos) {
    auto slo = planner::parse_slo(text);
    if (!slo) return slo.error().in("--slo");
    task.demand.slos.push_back(*slo);
  }
  if (!precision.empty() && precision != "auto") {
    if (precision != "fp32" && task.policy.mixed_precision == false)
      return invalid(
          fmt::format("--precision {} contradicts resource_policy.allow_mixed_precision of {}, which is false", precision, flags.task));
    task.policy.precision = precision;
  }
  const std::string prices = flags.prices.empty() ? task.prices : flags.prices;
  if (!prices.empty()) {
    SERIN_TRY(load.wanted.prices, planner::read_prices(prices, catalogue));
  }
  if (!flags.image.empty()) SERIN_CHECK(planner::check_image(flags.image));
  load.wanted.policy = task.policy;
  load.wanted.demand = task.demand;
  load.wanted.largest_batch = task.batch.has_value();
  return load;
}

std::optional<serving::Precision> cpu_precision(const planner::Policy& policy, bool multiplies_bf16) {
  if (policy.precision.empty()) return std::nullopt;
  if (policy.precision == "int8") return serving::Precision::kInt8;
  if (policy.precision == "bf16" && multiplies_bf16) return serving::Precision::kBf16;
  return serving::Precision::kFp32;
}

void note_length(planner::Task& task, const planner::ModelAnswer& model) {
  if (!task.length) return;
  const std::string how = model.length_symbol.empty() ? "ignored: the model has no open dimension that it is the size of"
                                                      : fmt::format("is the size of dimension '{}'", model.length_symbol);
  task.notes.push_back({"task.sequence_length", how});
}

std::string print_deployment(const LoadFlags& flags, const LoadQuestion& load, const planner::Answer& answer,
                             const planner::Offers& offers) {
  const planner::Deployment deployment{.name = load.task.model_name.empty() ? answer.models.front().name : load.task.model_name,
                                       .place = load.places.front(),
                                       .image = flags.image,
                                       .most_replicas = load.task.policy.most_replicas};
  return flags.format == "docker" ? planner::docker_text(deployment, offers) : planner::kubernetes_text(deployment, offers);
}

}  // namespace serin::cli
