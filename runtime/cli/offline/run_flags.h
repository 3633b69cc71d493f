// run_flags.h: the flags of commands that run a model over all rows of a file, and what every such command does with them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/offline/block_run.h"
#include "runtime/cli/offline/column_map.h"
#include "runtime/cli/offline/row_model.h"
#include "runtime/datasets/dataset.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

struct RunFlags {
  std::string model, data;
  EngineFlags engine;
  std::vector<std::string> map;
  int64_t batch = 64;
  int jobs = 0;  ///< 0: one for each core
  std::string shard = "1/1";
  std::string on_error = "stop";
  std::string work;  ///< folder for blocks; empty: next to the result
};

/// Positionals `model` and `data`, and the flags.
void add_run_flags(CLI::App& command, RunFlags& flags);

/// A model and its data, ready to run.
struct OpenRun {
  std::shared_ptr<const datasets::Dataset> data;
  ModelPlace place;
  std::shared_ptr<const RowModel> model;
  ColumnMap map;
  BlockRun blocks;
  bool skip = false;  ///< rows at fault are left out; otherwise the first one ends the run
};

/// An error with the exit code that it means.
struct RunFailure {
  Error error;
  int exit_code = 0;
};
/// kUsage for flags and for data that cannot be opened, kCannotRun for the model.
struct OpenedRun {
  std::optional<OpenRun> run;
  RunFailure failure;
};
OpenedRun open_run(const RunFlags& flags);

/// The part of a run's description that all such commands have: other flags, files or programs give another text.
Result<std::string> describe_run(const RunFlags& flags, const OpenRun& run);

/// A line of a report about rows that were left out: {"row": 7, "error": "data.csv, row 7 (line 9): column 'x': ..."}.
std::string fault_line(int64_t row, const Error& error);

/// Faults of a block as lines, for a payload; an error if they end the run.
Result<std::string> fault_lines(const OpenRun& run, const datasets::Rows& rows, const std::vector<std::optional<Error>>& faults);

}  // namespace serin::cli
