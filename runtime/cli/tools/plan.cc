// plan.cc: `serin plan`: how much memory and arithmetic models need, before they are served.
//
// Exit codes: 1 if the models do not fit the memory or the device that was named, 2 for what the question got wrong (a flag, a dimension without a size, no
// such file), 3 for a model that cannot run.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/tools/plan_fleet.h"
#include "runtime/cli/tools/plan_load.h"
#include "runtime/cli/tools/plan_observe.h"
#include "runtime/cli/validators.h"
#include "runtime/planner/calibration.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/report.h"
#include "runtime/serving/host/compute_pool.h"

namespace serin::cli {
namespace {

struct PlanOptions {
  std::vector<std::string> places;
  planner::Question question;
  EngineFlags engine;  // --isa alone
  std::string precision, device, device_precision, memory, catalogue;
  int cores = 0;
  size_t steps = 10;
  double calibrate_seconds = 0;  // 0: only read what was measured before
  std::string calibration, html, observe;
  LoadFlags load;
  FleetFlags fleet;
  bool this_machine = false;  // --device cpu
  bool leave_out = false;
  bool json = false;
};

int fail_plan(const Error& error) {
  std::fprintf(stderr, "serin plan: %s\n", error.message.c_str());
  const bool usage = error.code == Code::kInvalidArgument || error.code == Code::kNotFound || error.code == Code::kPermissionDenied;
  return usage ? kUsage : kCannotRun;
}

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

/// Nothing: no memory was named.
Result<std::optional<size_t>> room_of(const PlanOptions& options) {
  if (options.memory.empty()) return std::optional<size_t>();
  const auto room = planner::parse_bytes(options.memory);
  if (!room) return invalid(fmt::format("--memory {}: must be bytes, such as 512Mi or 16G", options.memory));
  return room;
}

/// Nothing: neither a device nor a memory was named.
Result<std::optional<planner::Placement>> place_answer(const PlanOptions& options, const planner::Planner& planner,
                                                       const planner::Answer& answer, const planner::Catalogue& catalogue) {
  if (options.device.empty() && options.memory.empty()) return std::optional<planner::Placement>();
  planner::PlacementQuestion wanted{.device = options.device, .precision = options.device_precision, .room = {}};
  SERIN_TRY(wanted.room, room_of(options));
  SERIN_TRY(planner::Placement placement, planner::place(planner, options.places, options.question, answer, wanted, catalogue));
  return std::optional(std::move(placement));
}

/// A card computes in its own precision; its memory is estimated from the plan in fp32.
Status take_device_precision(PlanOptions& options, const std::string& precision, const planner::Catalogue& catalogue) {
  if (options.device.empty()) return {};
  SERIN_TRY(const planner::Device* const device, catalogue.find(options.device));
  if (device->kind == planner::Device::Kind::kCpu || precision.empty()) return {};
  options.device_precision = precision;
  options.question.precision = serving::Precision::kFp32;
  return {};
}

/// What was measured on this machine, now or before. A file that was not named and does not fit is left alone.
Result<planner::Calibration> calibration_of(const PlanOptions& options, const planner::Machine& machine) {
  const std::string path = options.calibration.empty() ? planner::calibration_path() : options.calibration;
  const std::string name = planner::machine_name(machine);
  auto calibration = path.empty() ? Result<planner::Calibration>(planner::Calibration()) : planner::Calibration::read(path, name);
  const bool measures = options.calibrate_seconds > 0;
  const bool absent = !calibration && calibration.error().code == Code::kNotFound;
  if (!calibration && !options.calibration.empty() && !(measures && absent)) return calibration.error();
  if (!calibration) calibration = planner::Calibration();
  if (!measures) return calibration;
  SERIN_CHECK(planner::calibrate(machine, options.places, options.question, options.calibrate_seconds, *calibration));
  if (path.empty()) return invalid("--calibrate: there is no home folder to keep it in: name a file with --calibration");
  SERIN_CHECK(calibration->write(path, name));
  return calibration;
}

/// A task file may name the models, their batch, their precision and the length of their sequences.
Result<std::optional<LoadQuestion>> take_load(PlanOptions& options, const planner::Catalogue& catalogue) {
  if (!options.load.asked()) {
    if (options.places.empty() && options.fleet.file.empty()) return invalid("name a model's file or folder");
    return std::optional<LoadQuestion>();
  }
  SERIN_TRY(LoadQuestion load, read_load(options.load, options.places, options.precision, catalogue));
  planner::Question& question = options.question;
  options.places = load.places;
  question.length = load.task.length;
  if (load.task.batch && question.batches.empty()) question.batches = {*load.task.batch};
  if (const auto precision = cpu_precision(load.task.policy, kernels::multiplies_bf16()); precision && options.precision != "auto")
    question.precision = precision;
  load.wanted.device = options.device;
  load.wanted.this_machine = options.this_machine;
  SERIN_TRY(load.wanted.room, room_of(options));
  return std::optional(std::move(load));
}

Result<std::optional<planner::Offers>> offers_of(const PlanOptions& options, const planner::Planner& planner, const planner::Answer& answer,
                                                 std::optional<LoadQuestion>& load, const planner::Catalogue& catalogue) {
  if (!load) return std::optional<planner::Offers>();
  SERIN_TRY(planner::Offers offers, planner::make_offers(planner, options.places, options.question, answer, load->wanted, catalogue));
  note_length(load->task, answer.models.front());
  return std::optional(std::move(offers));
}

/// Returns the exit code. `offers` and `load` are both null, or neither.
int print(const PlanOptions& options, const planner::Answer& answer, const planner::Placement* placed, const planner::Offers* offers,
          const LoadQuestion* load, const planner::Observed* observed) {
  planner::Extras extras{.placement = placed, .offers = offers, .notes = {}, .observed = observed};
  if (load) extras.notes = load->task.notes;
  if (!options.html.empty())
    if (const Status written = write_file_atomically(options.html, planner::print_html(answer, placed)); !written)
      return fail_plan(written.error());
  const bool starts = offers && options.load.format != "text";
  if (starts && !offers->chosen()) {
    std::fprintf(stderr, "serin plan: %s\n", offers->advice().c_str());
  } else if (starts) {
    std::cout << print_deployment(options.load, *load, answer, *offers);
  } else {
    std::cout << (options.json ? planner::print_json(answer, extras) + "\n" : planner::print_text(answer, options.steps, extras));
  }
  std::cout << std::flush;
  const bool refused = (placed && placed->fit && !placed->fit->fits) || (offers && !offers->chosen());
  return refused ? kNo : kYes;
}

int run_plan(PlanOptions options) {
  log::configure({.level = log::Level::kWarning});
  const auto catalogue = planner::Catalogue::load(options.catalogue);
  if (!catalogue) return fail_plan(catalogue.error());
  options.this_machine = options.device == "cpu";
  if (options.this_machine) options.device.clear();
  if (!options.precision.empty()) {
    options.question.precision = serving::parse_precision(options.precision);
    if (!options.question.precision)
      return fail_plan(
          {Code::kInvalidArgument, fmt::format("--precision {}: must be auto, fp32, tf32, fp16, bf16 or int8", options.precision)});
  }
  auto load = take_load(options, *catalogue);
  if (!load) return fail_plan(load.error());
  const std::string precision = *load && options.precision.empty() ? (*load)->task.policy.precision : options.precision;
  if (const Status taken = take_device_precision(options, precision, *catalogue); !taken) return fail_plan(taken.error());
  auto engine = make_engine(options.engine);
  if (!engine) return fail_plan(engine.error());
  std::unique_ptr<kernels::Backend> bf16;
  if (kernels::multiplies_bf16() && (options.engine.isa.empty() || options.engine.isa == "avx512"))
    bf16 = kernels::make_cpu_backend({.bf16 = true});
  const planner::Machine machine{.backend = *engine->backend,
                                 .bf16_backend = bf16.get(),
                                 .note = engine->note,
                                 .cores = options.cores > 0 ? options.cores : serving::granted_cores()};
  const planner::Planner planner(machine);
  const auto calibration = calibration_of(options, machine);
  if (!calibration) return fail_plan(calibration.error());
  if (!options.fleet.file.empty()) {
    const auto code =
        plan_fleet(options.fleet, options.places, planner, calibration->empty() ? nullptr : &*calibration, *catalogue, options.json);
    return code ? *code : fail_plan(code.error());
  }
  auto answer = planner.plan(options.places, options.question);
  if (!answer) return fail_plan(answer.error());
  if (!calibration->empty())
    for (planner::ModelAnswer& model : answer->models) calibration->fill(model, options.leave_out ? model.path : std::string());
  const auto placement = place_answer(options, planner, *answer, *catalogue);
  if (!placement) return fail_plan(placement.error());
  const auto offers = offers_of(options, planner, *answer, *load, *catalogue);
  if (!offers) return fail_plan(offers.error());
  std::optional<planner::Observed> observed;
  if (!options.observe.empty()) {
    auto found = observe(options.observe, *answer);
    if (!found) return found.error().code == Code::kUnavailable ? (fail_plan(found.error()), kUnreachable) : fail_plan(found.error());
    observed = *std::move(found);
  }
  return print(options, *answer, *placement ? &**placement : nullptr, *offers ? &**offers : nullptr, *load ? &**load : nullptr,
               observed ? &*observed : nullptr);
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("plan", "Print the memory and the arithmetic that models need, without loading them");
  auto options = std::make_shared<PlanOptions>();
  auto& question = options->question;
  command->add_option("models", options->places, "model files, folders of one model, or folders with <name>/<version>/model.onnx");
  command->add_option("--batch", question.batches, "rows of the batches that will run, e.g. 1,8,32; default: all sizes up to max_batch")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{1}, serving::kMostBatch));
  command->add_option("--instances", question.instances, "runs at the same time; default: as the model's settings say")
      ->check(CLI::Range(1, 1024));
  command->add_option("--threads", question.threads, "threads for one run; default: as the model's settings say")
      ->check(CLI::Range(1, 1024));
  command->add_option("--clients", question.clients, "requests at the same time; default: two for each instance")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--cores", options->cores, "cores of the server, by which instances are counted; default: those of this process")
      ->check(CLI::Range(1, 4096));
  command->add_option("--precision", options->precision, "auto, fp32, bf16 or int8; default: as the model's settings say");
  command
      ->add_option_function<std::vector<std::string>>(
          "--dim",
          [&question](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_dim(question.sizes, text);
          },
          "sizes of another open dimension, e.g. seq=64,128; can be given several times")
      ->allow_extra_args(false);
  command->add_option("--isa", options->engine.isa, "scalar, avx2 or avx512; default: the best of this machine");
  command->add_option("--steps", options->steps, "steps to print, those with most arithmetic first; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(size_t{0}, size_t{1} << 20));
  command->add_option("--device", options->device,
                      "a device of the catalogue to place the models on, e.g. L4: fit, latency; cpu: that of this machine");
  command->add_option("--memory", options->memory, "memory that they may take, e.g. 512Mi or 16G; default: that of the device");
  command->add_option("--catalogue", options->catalogue, "file with more devices, as runtime/planner/catalogue.yaml has them");
  command
      ->add_option("--calibrate", options->calibrate_seconds,
                   "seconds to run the models in, to learn how long steps take on this machine; default: 30")
      ->expected(0, 1)
      ->default_str("30")
      ->check(between(0.1, 3600.0));
  command->add_option("--calibration", options->calibration,
                      "file with what was learnt; default: serin/plan.json in $XDG_CACHE_HOME or in ~/.cache");
  command->add_flag("--leave-out", options->leave_out, "predict each model without what was measured on it");
  add_load_flags(*command, options->load);
  auto* fleet = command->add_option(
      "--fleet", options->fleet.file,
      "fleet file: nodes, accelerators, load, and models to be placed on them; or the JSON of kubectl get nodes,pods -A");
  command->add_option("--solver", options->fleet.solver, "libserin_packing.so, which packs exactly; default: next to the program")
      ->needs(fleet);
  for (const char* const other : {"--task", "--rps", "--device", "--format"}) fleet->excludes(other);
  auto* observe_flag =
      command->add_option("--observe", options->observe,
                          "metrics of a server that runs these models, e.g. http://127.0.0.1:8002: its figures next to the plan's");
  fleet->excludes(observe_flag);
  command->add_option("--html", options->html, "file for the answer as one page with plots");
  command->add_flag("--json", options->json, "print one JSON object of schema serin.plan/1");
  command->callback([options, &exit_code] { exit_code = run_plan(*options); });
}

}  // namespace serin::cli
