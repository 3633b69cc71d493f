// plan.cc: `serin plan`: how much memory and arithmetic models need, before they are served.
//
// Exit codes: 1 if the models do not fit the memory, the device or the template that was named, or fail the smoke run. 2 for what the question
// got wrong (a flag, a key, a dimension without a size, no such file), 3 for a model that cannot run.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/model_uri.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/tools/plan_corrections.h"
#include "runtime/cli/tools/plan_flags.h"
#include "runtime/cli/tools/plan_observe.h"
#include "runtime/cli/tools/plan_smoke.h"
#include "runtime/planner/calibration.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/report.h"
#include "runtime/serving/host/compute_pool.h"

namespace serin::cli {
namespace {

/// What was asked, and what was found.
struct Found {
  planner::Answer answer;
  std::optional<planner::Placement> placement;
  std::optional<LoadQuestion> load;
  std::optional<planner::Offers> offers;  ///< if there is a load
  std::optional<planner::Observed> observed;
  std::optional<UsedTemplate> used;
  std::optional<planner::TemplatePlan> templated;  ///< if a template is used and an offer holds
};

int fail_plan(const Error& error) {
  std::fprintf(stderr, "serin plan: %s\n", error.message.c_str());
  if (error.code == Code::kFailedPrecondition) return kNo;
  const bool usage = error.code == Code::kInvalidArgument || error.code == Code::kNotFound || error.code == Code::kPermissionDenied;
  return usage ? kUsage : kCannotRun;
}

/// Of a server that was asked.
int fail_asking(const Error& error) {
  const int code = fail_plan(error);
  return error.code == Code::kUnavailable ? kUnreachable : code;
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

/// What was measured on this machine, and the file that keeps it.
struct Learned {
  planner::Calibration calibration;
  std::string path, machine;

  Status write() const { return calibration.write(path, machine); }
};

/// What was measured now or before. A file that was not named and does not fit is left alone.
Result<Learned> learn(const PlanOptions& options, const planner::Machine& machine) {
  const std::string path = options.calibration.empty() ? planner::calibration_path() : options.calibration;
  const std::string name = planner::machine_name(machine);
  auto calibration = path.empty() ? Result<planner::Calibration>(planner::Calibration()) : planner::Calibration::read(path, name);
  const bool measures = options.calibrate_seconds > 0;
  const bool absent = !calibration && calibration.error().code == Code::kNotFound;
  if (!calibration && !options.calibration.empty() && !(measures && absent)) return calibration.error();
  if (!calibration) calibration = planner::Calibration();
  Learned learned{*std::move(calibration), path, name};
  if (!measures) return learned;
  SERIN_CHECK(planner::calibrate(machine, options.places, options.question, options.calibrate_seconds, learned.calibration));
  if (path.empty()) return invalid("--calibrate: there is no home folder to keep it in: name a file with --calibration");
  SERIN_CHECK(learned.write());
  return learned;
}

/// A template says what no flag does. Nothing: none was named.
Result<std::optional<UsedTemplate>> take_template(PlanOptions& options) {
  if (options.from_template.path.empty()) return std::optional<UsedTemplate>();
  if (options.load.format == "docker")
    return invalid("--format docker: a template has a serin.yaml, which one line does not: take kubernetes");
  SERIN_TRY(UsedTemplate used, use_template(options.from_template, options.places));
  const planner::Template& made = used.made;
  options.places = used.places;
  options.question.settings = used.settings;
  if (!options.question.instances && used.settings.has("instances")) {
    SERIN_TRY(const int64_t instances, used.settings.integer("instances", 1, 1024, 1));
    options.question.instances = static_cast<int>(instances);
  }
  if (options.precision.empty()) options.precision = setting_of(used, "precision");
  if (options.device.empty()) options.device = made.gpu_count == 0 ? "cpu" : made.device;
  if (options.device == "cpu" && made.gpu_count.value_or(0) > 0)
    return invalid(
        fmt::format("--device cpu contradicts gpu_count, which is {} ({})", *made.gpu_count, made.layers.all.find("gpu_count")->where));
  if (options.cores == 0 && made.cpu) options.cores = static_cast<int>(std::ceil(made.cpu->first));
  return std::optional(std::move(used));
}

/// A task file may name the models, their batch, their precision and the length of their sequences.
Result<std::optional<LoadQuestion>> take_load(PlanOptions& options, const std::optional<UsedTemplate>& used,
                                              const planner::Catalogue& catalogue) {
  if (!options.load.asked() && !used) {
    if (options.places.empty() && options.fleet.file.empty()) return invalid("name a model's file or folder");
    return std::optional<LoadQuestion>();
  }
  SERIN_TRY(LoadQuestion load, read_load(options.load, options.places, options.precision, catalogue, used ? &used->made : nullptr));
  planner::Question& question = options.question;
  options.places = load.places;
  question.length = load.task.length;
  if (load.task.batch && question.batches.empty()) question.batches = {*load.task.batch};
  if (const auto precision = cpu_precision(load.task.policy, kernels::multiplies_bf16()); precision && options.precision != "auto")
    question.precision = precision;
  load.wanted.device = options.device;
  load.wanted.this_machine = options.this_machine;
  SERIN_TRY(load.wanted.room, room_of(options));
  if (used && used->settings.has("max_batch") && question.batches.empty()) load.wanted.largest_batch = true;
  return std::optional(std::move(load));
}

Result<std::optional<planner::Offers>> offers_of(const PlanOptions& options, const planner::Planner& planner, const planner::Answer& answer,
                                                 std::optional<LoadQuestion>& load, const planner::Catalogue& catalogue) {
  if (!load) return std::optional<planner::Offers>();
  SERIN_TRY(planner::Offers offers, planner::make_offers(planner, options.places, options.question, answer, load->wanted, catalogue));
  note_length(load->task, answer.models.front());
  return std::optional(std::move(offers));
}

/// Flags of the command line that are stronger than a template, by name.
std::map<std::string, std::string> stronger_flags(const PlanOptions& options) {
  std::map<std::string, std::string> flags;
  if (!options.load.image.empty()) flags["image"] = options.load.image;
  if (!options.question.batches.empty()) flags["batch"] = {};
  if (options.given.instances) flags["instances"] = {};
  if (options.given.precision) flags["precision"] = {};
  if (options.question.threads) flags["threads"] = {};
  return flags;
}

/// What the template makes of the chosen offer. Nothing: there is no template, or no offer holds.
Result<std::optional<planner::TemplatePlan>> fill_template(const PlanOptions& options, const Found& found) {
  if (!found.used || !found.offers->chosen()) return std::optional<planner::TemplatePlan>();
  SERIN_TRY(planner::TemplatePlan templated,
            planner::plan_template(found.used->made, found.used->model, *found.offers, stronger_flags(options)));
  return std::optional(std::move(templated));
}

/// Loads, warms up and checks the model, as the chosen offer would serve it; on the CPU, where this machine has no card.
Status pass_smoke(const PlanOptions& options, const Found& found) {
  SERIN_TRY(const std::vector<planner::FoundModel> models,
            planner::find_models(options.places, options.question.settings ? &*options.question.settings : nullptr));
  if (models.size() != 1) return invalid(fmt::format("--smoke runs one model, and there are {}", models.size()));
  const planner::Offer* const offer = found.offers ? found.offers->chosen() : nullptr;
  SmokeQuestion question{.model = models.front(),
                         .settings = {},
                         .flags = {},
                         .precision = found.answer.models.front().precision,
                         .threads = found.answer.models.front().threads,
                         .data = {},
                         .rtol = {},
                         .atol = {}};
  bool on_card = false;
  if (offer && offer->on_card()) {
    SERIN_TRY(const Engine engine, make_engine({.device = "auto"}));
    on_card = engine.device != nullptr;
    if (on_card) question.flags = {"--device", "cuda"};
    if (on_card) question.precision = offer->precision;
    if (!on_card) std::fprintf(stderr, "serin plan: smoke run on the CPU, because this machine has no card\n");
  }
  if (found.used) {
    auto flags = stronger_flags(options);
    planner::Offer here = *offer;
    if (!on_card && here.on_card()) {
      here.precision = "fp32";
      flags["precision"] = {};
    }
    question.settings = planner::block_text(planner::settings_of(found.used->made, &here, flags)).text;
    const planner::Template& made = found.used->made;
    question.flags.insert(question.flags.end(), made.args.begin(), made.args.end());
    if (made.smoke) {
      question.data = made.smoke->data;
      question.rtol = made.smoke->rtol;
      question.atol = made.smoke->atol;
    }
  }
  SERIN_TRY(const std::string passed, run_smoke(question));
  std::fprintf(stderr, "serin plan: %s\n", passed.c_str());
  return {};
}

std::string manifest_of(const PlanOptions& options, const Found& found, const planner::TemplateReport& report) {
  if (!found.templated) return print_deployment(options.load, *found.load, found.answer, *found.offers);
  planner::Manifest manifest = found.templated->manifest;
  const std::vector<std::string> remarks = options.from_template.explain ? explained_lines(report) : std::vector<std::string>();
  manifest.remarks.insert(manifest.remarks.end(), remarks.begin(), remarks.end());
  return planner::manifest_text(manifest);
}

/// Returns the exit code.
int print(const PlanOptions& options, const Found& found, const std::string& advice) {
  planner::TemplateReport report = found.used ? found.used->report : planner::TemplateReport();
  if (found.templated) report.values = found.templated->values;
  planner::Extras extras{.placement = found.placement ? &*found.placement : nullptr,
                         .offers = found.offers ? &*found.offers : nullptr,
                         .notes = found.load ? found.load->task.notes : std::vector<planner::Note>(),
                         .from_template = found.used ? &report : nullptr,
                         .explain = options.from_template.explain,
                         .observed = found.observed ? &*found.observed : nullptr};
  if (!options.html.empty())
    if (const Status written = write_file_atomically(options.html, planner::print_html(found.answer, extras.placement)); !written)
      return fail_plan(written.error());
  const bool starts = found.offers && options.load.format != "text";
  if (!advice.empty() && (starts || found.used)) std::fprintf(stderr, "serin plan: %s\n", advice.c_str());
  if (!starts)
    std::cout << (options.json ? planner::print_json(found.answer, extras) + "\n"
                               : planner::print_text(found.answer, options.steps, extras));
  else if (found.offers->chosen())
    std::cout << manifest_of(options, found, report);
  std::cout << std::flush;
  const bool refused = (found.placement && found.placement->fit && !found.placement->fit->fits) || !advice.empty();
  return refused ? kNo : kYes;
}

Result<int> answer(const PlanOptions& options, const planner::Planner& planner, Learned& learned, const planner::Catalogue& catalogue,
                   Found found) {
  SERIN_TRY(found.answer, planner.plan(options.places, options.question));
  if (!learned.calibration.empty())
    for (planner::ModelAnswer& model : found.answer.models) learned.calibration.fill(model, options.leave_out ? model.path : std::string());
  if (!options.leave_out) SERIN_CHECK(correct_times(learned.calibration, found.answer));
  SERIN_TRY(found.placement, place_answer(options, planner, found.answer, catalogue));
  SERIN_TRY(found.offers, offers_of(options, planner, found.answer, found.load, catalogue));
  SERIN_TRY(found.templated, fill_template(options, found));
  std::string advice;
  if (found.offers && !found.offers->chosen())
    advice = found.used ? advice_of(found.load->wanted, planner, options.places, options.question, found.answer, *found.offers, catalogue)
                        : found.offers->advice();
  const bool gates = found.used && found.used->made.smoke && options.load.format != "text";
  if ((options.smoke || gates) && advice.empty()) SERIN_CHECK(pass_smoke(options, found));
  if (!options.observe.empty()) {
    auto observed = observe(options.observe, options.prometheus, found.answer);
    if (!observed) return fail_asking(observed.error());
    found.observed = *std::move(observed);
    if (options.keep) SERIN_CHECK(keep_times(*found.observed, found.answer, learned.calibration));
    if (options.keep && !found.observed->runs.empty()) SERIN_CHECK(learned.write());
  }
  return print(options, found, advice);
}

int run_plan(PlanOptions options) {
  log::configure({.level = log::Level::kWarning});
  const auto catalogue = planner::Catalogue::load(options.catalogue);
  if (!catalogue) return fail_plan(catalogue.error());
  if (!options.prometheus.window.empty() && options.observe.empty() && options.fleet.load.empty())
    return fail_plan(invalid("--window: nothing asks Prometheus; --observe and --load do"));
  options.given = {.instances = options.question.instances.has_value(), .precision = !options.precision.empty()};
  Found found;
  auto used = take_template(options);
  if (!used) return fail_plan(used.error());
  found.used = *std::move(used);
  options.this_machine = options.device == "cpu";
  if (options.this_machine) options.device.clear();
  if (!options.precision.empty()) {
    options.question.precision = serving::parse_precision(options.precision);
    if (!options.question.precision)
      return fail_plan(
          {Code::kInvalidArgument, fmt::format("--precision {}: must be auto, fp32, tf32, fp16, bf16 or int8", options.precision)});
  }
  auto load = take_load(options, found.used, *catalogue);
  if (!load) return fail_plan(load.error());
  found.load = *std::move(load);
  const std::string precision = found.load && options.precision.empty() ? found.load->task.policy.precision : options.precision;
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
  auto learned = learn(options, machine);
  if (!learned) return fail_plan(learned.error());
  if (!options.fleet.file.empty()) {
    auto fleet = read_fleet_now(options.fleet, options.prometheus, *catalogue);
    if (!fleet) return fail_asking(fleet.error());
    const auto code = plan_fleet(options.fleet, *std::move(fleet), options.places, planner,
                                 learned->calibration.empty() ? nullptr : &learned->calibration, *catalogue, options.json);
    return code ? *code : fail_plan(code.error());
  }
  try {
    const auto code = answer(options, planner, *learned, *catalogue, std::move(found));
    return code ? *code : fail_plan(code.error());
  } catch (const ReleaseInterrupted&) {
    return kInterrupted;
  }
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("plan", "Print the memory and the arithmetic that models need, without loading them");
  auto options = std::make_shared<PlanOptions>();
  add_plan_flags(*command, *options);
  command->callback([options, &exit_code] {
    const auto failed = fetch_model_uris("plan", options->places);
    exit_code = failed ? *failed : run_plan(*options);
  });
}

}  // namespace serin::cli
