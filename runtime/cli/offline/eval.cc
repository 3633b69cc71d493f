// eval.cc: the blocks of a run are records: the truth of each row, and what each model answered. Once all blocks are there, the metrics are
// computed from all of them. So a run that was killed, or that several processes share, gives the same report to the last bit.

#include "runtime/cli/offline/eval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>

#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/offline/eval_html.h"
#include "runtime/cli/offline/eval_pixels.h"
#include "runtime/cli/offline/eval_records.h"
#include "runtime/cli/offline/eval_report.h"
#include "runtime/cli/offline/eval_samples.h"
#include "runtime/cli/offline/eval_store.h"
#include "runtime/cli/offline/eval_task.h"
#include "runtime/cli/offline/file_digest.h"
#include "runtime/datasets/convert.h"

namespace serin::cli {
namespace {

int fail_eval(const Error& error, int code) {
  std::fprintf(stderr, "serin eval: %s\n", error.message.c_str());
  return code;
}

struct EvalModel {
  ModelPlace place;
  std::shared_ptr<const RowModel> model;
  ColumnMap map;
  EvalReader reader;
};

/// Everything that the blocks and the report need.
struct EvalRun {
  OpenRun run;
  std::vector<EvalModel> models;  ///< the new one, and the one that it is compared with
  std::vector<size_t> columns;    ///< all that are read
  size_t label = 0;               ///< in `columns`
  std::optional<size_t> slice, picture;
  EvalTask task = EvalTask::kClassification;
  std::vector<Requirement> requirements;
  double margin = 0;
  SampleOptions samples;
  std::optional<EvalDrift> drift;
};

Result<std::string> label_column(const EvalOptions& options, const datasets::Dataset& data) {
  if (!options.label.empty()) return options.label;
  for (const char* usual : {"label", "annotations"})
    if (data.column(usual)) return std::string(usual);
  return invalid(fmt::format("which column has the truth? choose one with --label; columns: {}", fmt::join(data.columns(), ", ")));
}

Result<EvalModel> load_against(const EvalOptions& options, const OpenRun& run) {
  EvalModel other;
  SERIN_TRY(other.place, find_model(options.against));
  SERIN_TRY(other.model, RowModel::load(other.place, options.run.engine));
  const auto map = map_columns(*run.data, other.model->inputs(), options.run.map);
  if (!map) return map.error().in("--against " + options.against);
  other.map = *map;
  return other;
}

/// Puts the columns of all models into one list.
void join_columns(EvalRun& eval) {
  for (EvalModel& model : eval.models) {
    for (auto& input : model.map.inputs)
      for (size_t& position : input) position += eval.columns.size();
    eval.columns.insert(eval.columns.end(), model.map.columns.begin(), model.map.columns.end());
  }
}

Status choose_task(const EvalOptions& options, EvalRun& eval) {
  for (EvalModel& model : eval.models) {
    auto reader = find_output(model.model->outputs(), options.output);
    if (!reader) return reader.error();
    model.reader = *reader;
  }
  const steps::TensorFacts& output = eval.models.front().model->outputs()[eval.models.front().reader.output];
  if (!options.task.empty()) {
    eval.task = static_cast<EvalTask>(std::ranges::find(kEvalTasks, options.task) - kEvalTasks.begin());
  } else {
    constexpr int64_t kLooked = 256;
    SERIN_TRY(const datasets::Rows rows,
              eval.run.data->read(0, std::min(kLooked, eval.run.data->rows()), std::span(eval.columns).subspan(eval.label, 1)));
    SERIN_TRY(eval.task, infer_task(output, rows, 0));
  }
  const bool of_texts = output.dtype == DType::kString;
  if ((eval.task == EvalTask::kText || eval.task == EvalTask::kDetection) && !of_texts)
    return invalid(
        fmt::format("--task {}: output '{}' is of numbers; steps after the model make texts and boxes", options.task, output.name));
  if ((eval.task == EvalTask::kRegression || eval.task == EvalTask::kEmbedding || eval.task == EvalTask::kSegmentation) && of_texts)
    return invalid(fmt::format("--task {}: output '{}' is of texts", options.task, output.name));
  return {};
}

Result<EvalRun> prepare(const EvalOptions& options, OpenRun run) {
  EvalRun eval{.run = std::move(run)};
  for (const std::string& text : options.requirements) {
    SERIN_TRY(Requirement requirement, parse_requirement(text));
    eval.requirements.push_back(std::move(requirement));
  }
  if (!options.margin.empty() && options.against.empty()) return invalid("--no-worse-by needs --against");
  if (!options.margin.empty()) {
    SERIN_TRY(eval.margin, parse_margin(options.margin));
  }
  eval.models.push_back({eval.run.place, eval.run.model, eval.run.map, {}});
  if (!options.against.empty()) {
    SERIN_TRY(EvalModel other, load_against(options, eval.run));
    eval.models.push_back(std::move(other));
  }
  if (!options.training.empty()) {  // first of all: a file that is not there is named at once
    SERIN_TRY(eval.drift, measure_drift(eval.run, options.training, options.run.map));
  }
  join_columns(eval);
  const datasets::Dataset& data = *eval.run.data;
  const auto add = [&](std::string_view flag, const std::string& name) -> Result<size_t> {
    const auto column = data.column(name);
    if (!column) return column.error().in(flag);
    eval.columns.push_back(*column);
    return eval.columns.size() - 1;
  };
  SERIN_TRY(const std::string label, label_column(options, data));
  SERIN_TRY(eval.label, add("--label", label));
  if (!options.slice.empty()) {
    SERIN_TRY(eval.slice, add("--slice", options.slice));
  }
  SERIN_CHECK(choose_task(options, eval));
  if (eval.task == EvalTask::kDetection && data.column("image_id")) {
    SERIN_TRY(eval.picture, add("image_id", "image_id"));
  }
  for (EvalModel& model : eval.models) model.map.columns = eval.columns;
  eval.samples = {.task = eval.task, .labels = {}, .softmax = options.softmax};
  if (!options.labels.empty()) {
    SERIN_TRY(eval.samples.labels, read_lines(options.labels, size_t{64} << 20));
    while (!eval.samples.labels.empty() && eval.samples.labels.back().empty()) eval.samples.labels.pop_back();
  }
  return eval;
}

/// Fills in the record of a row that no model is at fault in.
Status read_record(const EvalRun& eval, const datasets::Rows& rows, size_t row, const std::deque<Answers>& answers, EvalRecord& record) {
  record.row = rows.first + static_cast<int64_t>(row);
  const std::string column = fmt::format("column '{}'", eval.run.data->columns()[eval.columns[eval.label]]);
  if (const Status read = read_truth(eval.task, rows.cell(row, eval.label), record); !read) return read.error().in(column);
  if (eval.slice && rows.cell(row, *eval.slice).kind != datasets::Cell::Kind::kMissing) {
    const auto text = datasets::text_of(rows.cell(row, *eval.slice));
    if (!text) return text.error().in(fmt::format("column '{}'", eval.run.data->columns()[eval.columns[*eval.slice]]));
    record.slice = *text;
  }
  if (eval.picture) {
    SERIN_TRY(const double picture, datasets::number_of(rows.cell(row, *eval.picture)));
    record.picture = static_cast<int64_t>(picture);
  } else {
    record.picture = record.row;
  }
  if (eval.task == EvalTask::kSegmentation) {
    for (size_t model = 0; model < answers.size(); ++model) {
      const TensorView& output = answers[model].row(row)[eval.models[model].reader.output];
      const Status counted = count_pixels(rows.cell(row, eval.label), output, record, record.answers.emplace_back());
      if (!counted) return counted.error().in(column);
    }
    return {};
  }
  for (size_t model = 0; model < answers.size(); ++model) {
    SERIN_TRY(EvalAnswer answer, read_answer(eval.task, eval.models[model].reader, answers[model].row(row)));
    record.answers.push_back(std::move(answer));
  }
  return {};
}

ComputeBlock block_function(const EvalRun& eval) {
  auto workers = std::make_shared<std::deque<RowWorker>>();
  for (const EvalModel& model : eval.models) workers->emplace_back(*model.model);
  return [&eval, workers](int64_t first, int64_t count) -> Result<std::string> {
    const datasets::Dataset& data = *eval.run.data;
    SERIN_TRY(const datasets::Rows rows, data.read(first, count, eval.columns));
    std::deque<Answers> answers;
    for (size_t model = 0; model < workers->size(); ++model) answers.push_back((*workers)[model].run(data, rows, eval.models[model].map));
    std::vector<std::optional<Error>> faults(rows.count());
    std::vector<EvalRecord> records;
    for (size_t row = 0; row < rows.count(); ++row) {
      for (const Answers& of : answers)
        if (!faults[row] && of.faults[row]) faults[row] = of.faults[row];
      if (faults[row]) continue;
      EvalRecord record;
      const Status read = read_record(eval, rows, row, answers, record);
      if (read)
        records.push_back(std::move(record));
      else
        faults[row] = read.error().in(data.place(first + static_cast<int64_t>(row)));
    }
    SERIN_CHECK(fault_lines(eval.run, rows, faults));  // an error where such a row ends the run
    return pack_records(records);
  };
}

Result<EvalFile> file_of(const ModelPlace& place) {
  SERIN_TRY(const auto files, files_of(place));
  SERIN_TRY(std::string digest, digest_of(files));
  return EvalFile{place.file, std::move(digest)};
}

Result<std::vector<Measured>> measure(const EvalSamples& samples, const std::vector<std::string>& names, evaluation::RowList rows,
                                      double confidence) {
  std::vector<Measured> measured;
  for (const std::string& name : names) {
    SERIN_TRY(const evaluation::Metric metric, samples.metric(name));
    measured.push_back({name, metric.value(rows), evaluation::interval_of(metric, rows, confidence)});
  }
  return measured;
}

void find_worst(const EvalRun& eval, const std::vector<EvalRecord>& records, const EvalSamples& samples, EvalReport& report) {
  constexpr size_t kMostWorst = 24;
  std::vector<std::pair<double, uint32_t>> losses;
  for (uint32_t row = 0; row < records.size(); ++row)
    if (const double loss = samples.loss(row); loss >= 0) losses.emplace_back(-loss, row);
  const size_t kept = std::min(kMostWorst, losses.size());
  std::partial_sort(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(kept), losses.end());
  for (size_t i = 0; i < kept; ++i) {
    const EvalRecord& record = records[losses[i].second];
    const std::string truth = eval.task == EvalTask::kRegression ? fmt::format("{:.6g}", record.truth_numbers.front()) : record.truth;
    report.worst.push_back({record.row, eval.run.data->place(record.row), truth, samples.answer_text(losses[i].second), -losses[i].first});
  }
}

Status add_slices(const EvalOptions& options, const std::vector<EvalRecord>& records, const EvalSamples& samples,
                  const std::vector<std::string>& names, EvalReport& report) {
  constexpr size_t kMostSlices = 200;
  std::map<std::string, std::vector<uint32_t>> slices;
  for (uint32_t row = 0; row < records.size(); ++row) slices[records[row].slice].push_back(row);
  if (slices.size() > kMostSlices)
    return invalid(fmt::format("--slice {}: has {} different values, at most {} make slices", options.slice, slices.size(), kMostSlices));
  report.slice_column = options.slice;
  for (const auto& [name, rows] : slices) {
    SERIN_TRY(auto measured, measure(samples, names, rows, options.confidence));
    report.slices.push_back({name, static_cast<int64_t>(rows.size()), std::move(measured)});
  }
  return {};
}

Result<EvalReport> make_report(const EvalOptions& options, const EvalRun& eval, const BlockStore& store) {
  std::vector<EvalRecord> records;
  for (int64_t block = 0; block < eval.run.blocks.blocks(); ++block) {
    SERIN_TRY(const std::string payload, store.read(block));
    SERIN_TRY(auto more, unpack_records(payload));
    std::ranges::move(more, std::back_inserter(records));
  }
  if (records.empty())
    return invalid(fmt::format("all {} rows are at fault; without --on-error skip the first one says why", eval.run.data->rows()));
  EvalReport report{.task = eval.task};
  report.label = eval.run.data->columns()[eval.columns[eval.label]];
  report.rows = static_cast<int64_t>(records.size());
  report.faults = eval.run.data->rows() - report.rows;
  report.confidence = options.confidence;
  SERIN_TRY(report.model, file_of(eval.run.place));
  SERIN_TRY(const std::string digest, digest_of(eval.run.data->files()));
  report.data = {options.run.data, digest};

  SERIN_TRY(const EvalSamples samples, make_samples(records, 0, eval.samples));
  const auto rows = evaluation::all_rows(records.size());
  std::vector<std::string> names = options.metrics.empty() ? usual_metrics(eval.task, samples) : options.metrics;
  SERIN_TRY(report.measured, measure(samples, names, rows, options.confidence));
  report.drift = eval.drift;
  if (options.latency) {
    std::vector<TimedModel> timed;
    timed.reserve(eval.models.size());
    for (const EvalModel& model : eval.models) timed.push_back({model.model.get(), &model.map});
    SERIN_TRY(report.latency, measure_latency(*eval.run.data, timed));
  }
  for (const Requirement& requirement : eval.requirements) {
    if (const auto known = report.value_of(requirement.metric)) {
      report.requirements.emplace_back(requirement, *known);
      continue;
    }
    const auto metric = samples.metric(requirement.metric);
    if (!metric) return metric.error().in("--require");
    report.requirements.emplace_back(requirement, metric->value(rows));
  }
  if (!options.slice.empty()) SERIN_CHECK(add_slices(options, records, samples, names, report));
  if (eval.models.size() > 1) {
    SERIN_TRY(report.against.emplace(), file_of(eval.models[1].place));
    const auto old = make_samples(records, 1, eval.samples);
    if (!old) return old.error().in("--against");
    SERIN_TRY(const evaluation::Metric metric, samples.metric(names.front()));
    const auto old_metric = old->metric(names.front());
    if (!old_metric) return old_metric.error().in("--against");
    report.comparison = EvalComparison{names.front(), eval.margin, old_metric->value(rows), !options.margin.empty(),
                                       evaluation::compare(metric, *old_metric, rows, eval.margin, options.confidence)};
  }
  if (samples.classes) {
    constexpr size_t kMostClasses = 200;  // a larger matrix helps nobody, and has a megabyte
    if (samples.classes->classes.size() <= kMostClasses) {
      report.classes = samples.classes->classes;
      report.confusion = evaluation::confusion_matrix(*samples.classes, rows);
    }
    if (samples.classes->probabilities) report.calibration = evaluation::calibration(*samples.classes, rows);
  }
  find_worst(eval, records, samples, report);
  return report;
}

Status write_report(const EvalOptions& options, const EvalRun& eval, const EvalReport& report) {
  const std::string json = report_json(report);
  if (!options.out.empty()) SERIN_CHECK(write_file_atomically(options.out, json));
  if (!options.html.empty()) SERIN_CHECK(write_file_atomically(options.html, report_html(report, *eval.run.data)));
  std::fputs((options.json ? json : report_text(report)).c_str(), stdout);
  return {};
}

}  // namespace

int run_eval(const EvalOptions& options) {
  OpenedRun opened = open_run(options.run);
  if (!opened.run) return fail_eval(opened.failure.error, opened.failure.exit_code);
  const auto eval = prepare(options, *std::move(opened.run));
  if (!eval) return fail_eval(eval.error(), kUsage);
  auto description = describe_run(options.run, eval->run);
  for (const EvalModel& model : eval->models) {
    const auto files = files_of(model.place);
    const auto stamp = files ? stamp_of(*files) : Result<std::string>(files.error());
    if (!stamp) return fail_eval(stamp.error(), kUsage);
    if (description) *description += " " + *stamp;
  }
  if (!description) return fail_eval(description.error(), kUsage);
  *description += fmt::format(" eval {} columns {} output {}", kEvalTasks[static_cast<size_t>(eval->task)], fmt::join(eval->columns, " "),
                              options.output);
  const auto store = open_eval_store(options.run.work, options.out, *description, eval->run.blocks.shard);
  if (!store) return fail_eval(store.error(), kUsage);
  const Status computed = compute_blocks(eval->run.blocks, **store, [&] { return block_function(*eval); });
  if (!computed) return fail_eval(computed.error(), kCannotRun);
  if (const Status looked = (*store)->look_again(); !looked) return fail_eval(looked.error(), kUsage);
  if (static_cast<int64_t>((*store)->count()) < eval->run.blocks.blocks()) {
    std::fprintf(stderr, "shard %s is done; the last shard writes the report, and its exit code is the verdict\n",
                 options.run.shard.c_str());
    return kYes;
  }
  int exit_code = kYes;
  const auto completed = (*store)->complete([&]() -> Status {
    SERIN_TRY(const EvalReport report, make_report(options, *eval, **store));
    SERIN_CHECK(write_report(options, *eval, report));
    exit_code = report.exit_code();
    return {};
  });
  if (!completed) return fail_eval(completed.error(), completed.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  if (!*completed) std::fprintf(stderr, "another shard has written the report\n");
  return exit_code;
}

void add_eval(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("eval", "Measure how good a model's answers are, and compare it with another model");
  auto options = std::make_shared<EvalOptions>();
  add_run_flags(*command, options->run);
  add_eval_flags(*command, *options);
  command
      ->add_option("--metric", options->metrics,
                   "a metric to report, the first is the one that --against compares; can be given several times")
      ->allow_extra_args(false);
  command->add_option("--slice", options->slice, "a column whose values are judged each by itself, too");
  command->add_option("--require", options->requirements, "a gate: 'top1 >= 0.95'; can be given several times")->allow_extra_args(false);
  command->add_option("--against", options->against, "another model that answers the same rows, such as the one that is running");
  command->add_option("--no-worse-by", options->margin,
                      "a gate: with --confidence, at most that much worse than --against: 0.5pt or 0.005");
  command->add_option("--training", options->training, "data that the model was trained on, or a sample: do the inputs look like those?");
  command->add_flag("--latency", options->latency, "also time single rows: p50, p90 and p99 of each model");
  command->add_option("--confidence", options->confidence, "of intervals and of the comparison")
      ->capture_default_str()
      ->check(CLI::Range(0.5, 0.9999));
  command->add_option("--out", options->out, "file for the report as JSON");
  command->add_option("--html", options->html, "file for the report as a page that needs no other file");
  command->add_flag("--json", options->json, "print the report as JSON");
  command->callback([options, &exit_code] { exit_code = run_eval(*options); });
}

}  // namespace serin::cli
