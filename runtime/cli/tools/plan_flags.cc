#include "runtime/cli/tools/plan_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "runtime/base/number.h"
#include "runtime/cli/validators.h"

namespace serin::cli {
namespace {

/// "seq=64,128"
void add_dim(std::map<std::string, std::vector<int64_t>>& sizes, const std::string& text) {
  const size_t equals = text.find('=');
  std::vector<int64_t> values;
  for (size_t from = equals; from < text.size();) {
    const size_t to = std::min(text.find(',', from + 1), text.size());
    const auto value = parse_number<int64_t>(text.substr(from + 1, to - from - 1));
    if (!value || *value < 1) throw CLI::ValidationError("--dim", "'" + text + "' is not NAME=NUMBER,... with numbers of at least 1");
    values.push_back(*value);
    from = to;
  }
  if (equals == 0 || values.empty()) throw CLI::ValidationError("--dim", "'" + text + "' is not NAME=NUMBER,...");
  std::ranges::sort(values);
  sizes[text.substr(0, equals)] = std::move(values);
}

}  // namespace

void add_plan_flags(CLI::App& command, PlanOptions& options) {
  auto& question = options.question;
  command.add_option("models", options.places, "model files, folders of one model, or folders with <name>/<version>/model.onnx");
  command.add_option("--batch", question.batches, "rows of the batches that will run, e.g. 1,8,32; default: all sizes up to max_batch")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{1}, serving::kMostBatch));
  command.add_option("--instances", question.instances, "runs at the same time; default: as the model's settings say")
      ->check(CLI::Range(1, 1024));
  command.add_option("--threads", question.threads, "threads for one run; default: as the model's settings say")
      ->check(CLI::Range(1, 1024));
  command.add_option("--clients", question.clients, "requests at the same time; default: two for each instance")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--cores", options.cores, "cores of the server, by which instances are counted; default: those of this process")
      ->check(CLI::Range(1, 4096));
  command.add_option("--precision", options.precision, "auto, fp32, bf16 or int8; default: as the model's settings say");
  command
      .add_option_function<std::vector<std::string>>(
          "--dim",
          [&question](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_dim(question.sizes, text);
          },
          "sizes of another open dimension, e.g. seq=64,128; can be given several times")
      ->allow_extra_args(false);
  command.add_option("--isa", options.engine.isa, "scalar, avx2 or avx512; default: the best of this machine");
  command.add_option("--steps", options.steps, "steps to print, those with most arithmetic first; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(size_t{0}, size_t{1} << 20));
  command.add_option("--device", options.device,
                     "a device of the catalogue to place the models on, e.g. L4: fit, latency; cpu: that of this machine");
  command.add_option("--memory", options.memory, "memory that they may take, e.g. 512Mi or 16G; default: that of the device");
  command.add_option("--catalogue", options.catalogue, "file with more devices, as runtime/planner/catalogue.yaml has them");
  command
      .add_option("--calibrate", options.calibrate_seconds,
                  "seconds to run the models in, to learn how long steps take on this machine; default: 30")
      ->expected(0, 1)
      ->default_str("30")
      ->check(between(0.1, 3600.0));
  command.add_option("--calibration", options.calibration,
                     "file with what was learnt; default: serin/plan.json in $XDG_CACHE_HOME or in ~/.cache");
  auto* leave_out = command.add_flag("--leave-out", options.leave_out, "predict each model without what was measured on it");
  add_load_flags(command, options.load);
  auto* made = add_template_flags(command, options.from_template);
  command.add_flag("--smoke", options.smoke, "load, warm up and check the model on this machine first; exit code 1 if that fails");
  auto* fleet = command.add_option(
      "--fleet", options.fleet.file,
      "fleet file: nodes, accelerators, load, and models to be placed on them; or the JSON of kubectl get nodes,pods -A");
  command.add_option("--solver", options.fleet.solver, "libserin_packing.so, which packs exactly; default: next to the program")
      ->needs(fleet);
  for (const char* const other : {"--task", "--rps", "--device", "--format"}) fleet->excludes(other);
  auto* load = command.add_option("--load", options.fleet.load,
                                  "Prometheus server with the load of the fleet's cards by DCGM, e.g. prometheus+http://127.0.0.1:9090");
  load->needs(fleet);
  auto* observe_flag = command.add_option(
      "--observe", options.observe,
      "metrics of a server that runs these models, e.g. http://127.0.0.1:8002: its figures next to the plan's; or of all servers, by a "
      "Prometheus server: prometheus+http://127.0.0.1:9090");
  fleet->excludes(observe_flag);
  command
      .add_flag(
          "--keep", options.keep,
          "keep the factor by which runs of the observed servers took longer than planned, for later plans of these models on this machine")
      ->needs(observe_flag)
      ->excludes(leave_out);
  add_prometheus_flags(command, options.prometheus);
  fleet->excludes(made);
  command.add_option("--html", options.html, "file for the answer as one page with plots");
  command.add_flag("--json", options.json, "print one JSON object of schema serin.plan/1");
}

}  // namespace serin::cli
