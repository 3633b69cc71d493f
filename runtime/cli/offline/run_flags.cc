#include "runtime/cli/offline/run_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "runtime/base/json_quote.h"
#include "runtime/base/version.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/offline/file_digest.h"
#include "runtime/datasets/open.h"

namespace serin::cli {

void add_run_flags(CLI::App& command, RunFlags& flags) {
  command
      .add_option("model", flags.model, "model file, a model's folder with its versions (the highest one runs), or the folder of a version")
      ->required();
  command
      .add_option("data", flags.data,
                  ".npz, .jsonl, .csv, .tsv, .parquet, a folder of pictures with a folder for each class, or COCO's .json")
      ->required();
  command
      .add_option("--map", flags.map,
                  "INPUT=COLUMN: an input of the model that takes a column of another name; a,b,c or p* for several columns")
      ->allow_extra_args(false);
  command.add_option("--batch", flags.batch, "rows in one run of the model")->capture_default_str()->check(CLI::Range(1, 65'536));
  command.add_option("--jobs", flags.jobs, "batches that are computed at the same time; 0: one for each core")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_option("--shard", flags.shard, "2/8: only the second eighth; the process that comes last writes the result")
      ->capture_default_str();
  command.add_option("--work", flags.work,
                     "folder in which a run keeps what it has computed, shared by its shards; default: next to the result");
  command.add_option("--on-error", flags.on_error, "stop, or skip: leave out rows that are at fault, and write the reasons")
      ->capture_default_str()
      ->check(CLI::IsMember({"stop", "skip"}));
  add_engine_flags(command, flags.engine);
}

OpenedRun open_run(const RunFlags& flags) {
  const auto fail = [](const Error& error, int code) { return OpenedRun{std::nullopt, {error, code}}; };
  OpenRun run;
  const auto shard = parse_shard(flags.shard);
  if (!shard) return fail(shard.error(), kUsage);
  auto data = datasets::open(flags.data);
  if (!data) return fail(data.error(), kUsage);
  run.data = *std::move(data);
  if (run.data->rows() == 0) return fail(invalid(flags.data + ": has no rows"), kUsage);
  auto place = find_model(flags.model);
  if (!place) return fail(place.error(), kUsage);
  run.place = *std::move(place);
  const auto decided = with_decided_precision(flags.engine, run.place.file, 1);
  if (!decided) return fail(decided.error(), decided.error().code == Code::kInvalidArgument ? kUsage : kCannotRun);
  auto model = RowModel::load(run.place, *decided);
  if (!model) return fail(model.error(), make_engine(*decided) ? kCannotRun : kUsage);
  run.model = *std::move(model);
  auto map = map_columns(*run.data, run.model->inputs(), flags.map);
  if (!map) return fail(map.error().in(flags.data), kUsage);
  run.map = *std::move(map);
  const int cores = std::max(1U, std::thread::hardware_concurrency());
  run.blocks = {.rows = run.data->rows(),
                .rows_in_block = flags.batch,
                .shard = *shard,
                .threads = flags.jobs > 0 ? flags.jobs : std::max(1, cores / decided->threads)};
  run.skip = flags.on_error == "skip";
  return {std::move(run), {}};
}

Result<std::string> describe_run(const RunFlags& flags, const OpenRun& run) {
  SERIN_TRY(const auto files, files_of(run.place));
  SERIN_TRY(const std::string model, stamp_of(files));
  SERIN_TRY(const std::string data, stamp_of(run.data->files()));
  return fmt::format("serin {} model {} data {} batch {} map {} on-error {} {} {} {} {} {}", kVersion, model, data, flags.batch,
                     fmt::join(flags.map, " "), flags.on_error, flags.engine.precision, flags.engine.device, flags.engine.isa,
                     flags.engine.threads, fmt::join(flags.engine.disabled_passes, " "));
}

std::string fault_line(int64_t row, const Error& error) {
  std::string line = fmt::format(R"({{"row":{},"error":)", row);
  append_json_quoted(line, error.message);
  return line + "}\n";
}

Result<std::string> fault_lines(const OpenRun& run, const datasets::Rows& rows, const std::vector<std::optional<Error>>& faults) {
  std::string lines;
  for (size_t i = 0; i < faults.size(); ++i) {
    if (!faults[i]) continue;
    if (!run.skip) return *faults[i];
    lines += fault_line(rows.first + static_cast<int64_t>(i), *faults[i]);
  }
  return lines;
}

}  // namespace serin::cli
