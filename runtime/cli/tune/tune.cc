// tune.cc: `serin tune` finds the cheapest settings of a model with which a goal holds. It asks the commands of this program, each in a process
// of its own: `serin eval` whether the answers are good enough in a precision, then `serin serve` and `serin load` how fast they come.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "kernels/backend.h"
#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/base/temporary_folder.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/release/judging.h"
#include "runtime/cli/tune/tune_report.h"
#include "runtime/cli/validators.h"
#include "runtime/serving/host/compute_pool.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr size_t kLargestReport = 16 << 20;

struct TuneOptions {
  std::string model, data, goal, samples, load_data, out, name;
  EvalPolicy eval;
  std::vector<std::string> precisions;
  std::vector<int64_t> batches;
  std::vector<int> instances;
  double rate = 0, seconds = 3;
  bool json = false;
};

int fail_tune(const Error& error, int code) {
  std::fprintf(stderr, "serin tune: %s\n", error.message.c_str());
  return code;
}
int fail_tune(const Error& error) {
  const bool of_user = error.code == Code::kInvalidArgument || error.code == Code::kNotFound || error.code == Code::kUnsupported;
  return fail_tune(error, of_user ? kUsage : kCannotRun);
}

/// One line that the next one replaces; for people only.
void progress(const std::string& line) {
  if (::isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
}

/// What is to be tried, once everything is checked that can be checked without running anything.
struct Tune {
  const TuneOptions& options;
  Goal goal;
  ModelPlace place;
  std::string name;
  TuneReport report;
};

/// Requests that a percentile needs: with fewer it is the slowest of them.
double least_requests(std::string_view percentile) {
  constexpr std::pair<std::string_view, double> kLeast[] = {{"p50", 2}, {"p90", 10}, {"p99", 100}, {"p999", 1000}};
  return std::ranges::find(kLeast, percentile, &std::pair<std::string_view, double>::first)->second;
}

/// Of a folder or a file, as `serin serve` would name the model.
std::string name_of(const ModelPlace& place) {
  std::error_code ignored;
  const fs::path path = place.settings.empty() ? fs::path(place.file).stem() : fs::absolute(place.settings, ignored).filename();
  return path.empty() ? "model" : path.string();
}

Result<Tune> prepare(const TuneOptions& options) {
  Tune tune{.options = options, .goal = {}, .place = {}, .name = {}, .report = {}};
  SERIN_TRY(tune.goal, parse_goal(options.goal));
  SERIN_TRY(tune.place, find_model(options.model));
  std::error_code ignored;
  const fs::path settings = tune.place.settings;
  if (!settings.empty() && fs::exists(settings / "config.pbtxt", ignored))
    return Error{Code::kUnsupported, fmt::format("{}: has config.pbtxt; write its settings into serin.yaml", settings.string())};
  if (!tune.goal.quality.empty() && options.data.empty())
    return invalid(fmt::format("--goal: '{}' needs rows with the truth: name them with --data", tune.goal.quality.front().text));
  if (tune.goal.quality.empty() && options.precisions.size() != 1)
    return invalid("--goal has no metric of the answers, so precisions cannot be compared: name a metric, or one --precision");
  for (const Requirement& bound : tune.goal.latency)
    if (const double least = least_requests(bound.metric); options.rate > 0 && options.rate * options.seconds < least)
      return invalid(fmt::format("--seconds {:g}: {} needs {:g} requests, which take {:g} seconds at --rps {:g}", options.seconds,
                                 bound.metric, least, std::ceil(least / options.rate), options.rate));
  if (!options.out.empty() && fs::exists(options.out, ignored)) return invalid(fmt::format("--out {}: exists already", options.out));
  tune.name = options.name.empty() ? name_of(tune.place) : options.name;
  tune.report = {.model = options.model, .goal = options.goal, .data = options.data, .rate = options.rate, .precisions = {}, .trials = {}};
  return tune;
}

/// A column of numbers in an .npz file also feeds the load, if the model takes its arrays as they are.
std::string load_data_of(const TuneOptions& options) {
  if (!options.load_data.empty()) return options.load_data;
  return options.data.ends_with(".npz") && options.eval.map.empty() ? options.data : "";
}

/// Read when the command runs: the cores granted by control groups are in files.
std::vector<int> wanted_instances(const TuneOptions& options) {
  if (!options.instances.empty()) return options.instances;
  const int cores = serving::granted_cores();
  return cores > 1 ? std::vector<int>{1, cores} : std::vector<int>{1};
}

std::vector<std::string> wanted_precisions(const TuneOptions& options) {
  if (!options.precisions.empty()) return options.precisions;
  if (kernels::multiplies_bf16()) return {"fp32", "bf16", "int8"};
  return {"fp32", "int8"};
}

Result<JudgedPrecision> judge_precision(const Tune& tune, const std::string& precision, const std::string& work) {
  JudgedPrecision judged{.precision = precision, .values = {}, .why = {}};
  if (tune.goal.quality.empty()) return judged;
  EvalPolicy policy = tune.options.eval;
  for (const Requirement& requirement : tune.goal.quality) {
    const std::string text = requirement.text;
    policy.require.push_back(requirement.metric + text.substr(text.find_first_of("<>")));
  }
  const std::string out = fmt::format("{}/{}.json", work, precision);
  std::vector<std::string> arguments = eval_arguments(policy, tune.options.model, tune.options.data, "", out, "");
  arguments.insert(arguments.end(), {"--precision", precision});
  if (precision == "int8" && !tune.options.samples.empty()) arguments.insert(arguments.end(), {"--samples", tune.options.samples});
  SERIN_TRY(const ChildEnd end, run_serin(arguments, work));
  if (end.exit_code == kUsage) return invalid(end.why());
  if (end.signal != 0 || (end.exit_code != kYes && end.exit_code != kNo)) {
    judged.why = end.why();
    return judged;
  }
  SERIN_TRY(const std::string text, read_file(out, kLargestReport));
  boost::system::error_code error;
  const json::value report = json::parse(text, error);
  const json::value* requirements = error ? nullptr : json_at::find(report, "/requirements");
  if (!requirements || !requirements->is_array() || requirements->get_array().size() != tune.goal.quality.size())
    return Error{Code::kCorrupt, out + ": is no report"};
  for (size_t i = 0; i < tune.goal.quality.size(); ++i) {
    judged.values.emplace_back(tune.goal.quality[i], json_at::number(requirements->get_array()[i], "/value", NAN));
    const auto& [requirement, number] = judged.values.back();
    if (!requirement.holds(number) && judged.why.empty())
      judged.why = fmt::format("{} is {:.4f}, wanted {}", requirement.metric, number, requirement.text);
  }
  return judged;
}

Status try_all(Tune& tune, const std::string& work) {
  const TuneOptions& options = tune.options;
  const Traffic traffic{.rate = options.rate, .seconds = options.seconds, .data = load_data_of(options)};
  const std::vector<int> all_instances = wanted_instances(options);
  std::set<int64_t> refused;  // batches with which the model does not load
  for (const std::string& precision : wanted_precisions(options)) {
    progress(precision + " ...");
    SERIN_TRY(JudgedPrecision judged, judge_precision(tune, precision, work));
    const bool holds = judged.why.empty();
    tune.report.precisions.push_back(std::move(judged));
    if (!holds) continue;
    for (const int64_t batch : options.batches) {
      for (const int instances : all_instances) {
        if (refused.contains(batch)) continue;
        progress(fmt::format("{}, max_batch {}, instances {} ...", precision, batch, instances));
        SERIN_TRY(Trial trial, try_choice(tune.place, tune.name, {precision, batch, instances}, options.samples, tune.goal, traffic, work));
        if (!trial.measured && batch > 1) refused.insert(batch);
        tune.report.trials.push_back(std::move(trial));
      }
    }
  }
  progress("");
  tune.report.choose();
  return {};
}

Status write_model(const Tune& tune) {
  const fs::path out = fs::path(tune.options.out).lexically_normal();
  const fs::path folder = out.has_filename() ? out : out.parent_path();
  const std::string name = folder.filename().string();
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  SERIN_CHECK(lay_out(tune.place, name, tune.report.trials[*tune.report.chosen].choice, tune.options.samples, parent, /*copies=*/true));
  return write_file_atomically((folder / "tuned.json").string(), tune_json(tune.report));
}

int run_tune(const TuneOptions& options) {
  block_end_signals();
  auto tune = prepare(options);
  if (!tune) return fail_tune(tune.error());
  const auto work = TemporaryFolder::make("serin-tune");
  if (!work) return fail_tune(work.error());
  try {
    if (const Status tried = try_all(*tune, work->path()); !tried) return fail_tune(tried.error());
  } catch (const ReleaseInterrupted&) {
    return kInterrupted;
  }
  if (tune->report.chosen && !options.out.empty())
    if (const Status written = write_model(*tune); !written) return fail_tune(written.error(), kCannotRun);
  std::fputs((options.json ? tune_json(tune->report) : tune_text(tune->report, !options.samples.empty())).c_str(), stdout);
  return tune->report.chosen ? kYes : kNo;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("tune", "Find the cheapest precision, batch and instances of a model with which a goal holds");
  auto options = std::make_shared<TuneOptions>();
  command->add_option("model", options->model, "model file, a model's folder with its versions, or the folder of a version")->required();
  command->add_option("--goal", options->goal, "conditions such as 'top1 >= 95 %, p99 <= 50 ms'")->required();
  command->add_option("--data", options->data, "rows with the truth, as serin eval reads them");
  command->add_option("--rps", options->rate, "requests a second that will come; default: as many as hold the goal")
      ->check(between(0.001, 1e6));
  command
      ->add_option("--precision", options->precisions, "fp32, bf16, int8: those to try, in this order; default: all that this machine has")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"fp32", "bf16", "int8"}));
  options->batches = {1, 8, 32};
  command->add_option("--max-batch", options->batches, "values of max_batch to try; default: 1, 8 and 32")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--instances", options->instances, "values of instances to try; default: 1 and the number of cores")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  command->add_option("--samples", options->samples, "folder of inputs that int8 takes ranges from, as the key samples of serin.yaml")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--load-data", options->load_data,
                   "what the load sends, as --data of serin load; default: the rows of an .npz, else random numbers")
      ->check(CLI::ExistingPath);
  command->add_option("--seconds", options->seconds, "duration of each load")->capture_default_str()->check(between(0.1, 3600.0));
  command->add_option("--name", options->name, "name of the model; default: that of its folder or file");
  command->add_option("--out", options->out, "new folder for the model with the settings that were chosen; only if the goal holds");
  add_eval_flags(*command, options->eval);
  command->add_option("--map", options->eval.map, "INPUT=COLUMN: an input of the model that takes a column of another name")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print one JSON object of schema serin.tune/1");
  command->callback([options, &exit_code] { exit_code = run_tune(*options); });
}

}  // namespace serin::cli
