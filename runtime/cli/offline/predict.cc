// predict.cc: a block of rows is read, computed, encoded, and kept in the work folder. Once all blocks are there, they are joined into the
// result, which appears under its name in one step. So a run that was killed goes on where it was, with the same bits at the end.
//
// A block's payload: the length of its fault lines (8 bytes), the lines, and what the format of the result makes of the answers.

#include "runtime/cli/offline/predict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "runtime/cli/commands.h"
#include "runtime/cli/offline/output_stream.h"
#include "runtime/cli/offline/parquet_result.h"
#include "runtime/cli/offline/result_file.h"

namespace serin::cli {
namespace {

int fail_predict(const Error& error, int code) {
  std::fprintf(stderr, "serin predict: %s\n", error.message.c_str());
  return code;
}

std::string with_faults(const std::string& faults, std::string_view answers) {
  const uint64_t bytes = faults.size();
  std::string payload(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  return payload.append(faults).append(answers);
}

struct Payload {
  std::string faults, answers;
};
Result<Payload> cut_payload(std::string_view payload) {
  uint64_t bytes = 0;
  if (payload.size() < sizeof bytes) return Error{Code::kCorrupt, "a stored block is damaged"};
  std::memcpy(&bytes, payload.data(), sizeof bytes);
  payload.remove_prefix(sizeof bytes);
  if (bytes > payload.size()) return Error{Code::kCorrupt, "a stored block is damaged"};
  return Payload{std::string(payload.substr(0, bytes)), std::string(payload.substr(bytes))};
}

/// Writes the result and, if there are any, the faults next to it. Returns the number of rows at fault.
Result<int64_t> join_blocks(const PredictOptions& options, const OpenRun& run, const ResultFile& file, const BlockStore& store) {
  int64_t faults = 0;
  const std::string path = options.out + ".errors.jsonl";
  std::optional<OutputStream> errors;
  for (int64_t block = 0; block < run.blocks.blocks(); ++block) {
    SERIN_TRY(const std::string text, store.read(block));
    SERIN_TRY(const Payload payload, cut_payload(text));
    if (payload.faults.empty()) continue;
    if (!errors) {
      SERIN_TRY(auto made, OutputStream::create(path));
      errors.emplace(std::move(made));
    }
    faults += std::ranges::count(payload.faults, '\n');
    SERIN_CHECK(errors->write(payload.faults));
  }
  if (faults == run.blocks.rows)
    return invalid(fmt::format("all {} rows are at fault; the first: {}", faults, [&] {
      const auto first = store.read(0);
      const auto cut = first ? cut_payload(*first) : Result<Payload>(first.error());
      return cut ? cut->faults.substr(0, cut->faults.find('\n')) : cut.error().message;
    }()));
  if (errors) SERIN_CHECK(errors->finish());
  std::error_code ignored;
  if (!errors) std::filesystem::remove(path, ignored);  // of an earlier run
  const Status joined = file.join(options.out, run.blocks.blocks(), [&](int64_t block) -> Result<std::string> {
    SERIN_TRY(const std::string text, store.read(block));
    SERIN_TRY(Payload payload, cut_payload(text));
    return std::move(payload.answers);
  });
  if (!joined) return joined.error();
  return faults;
}

void report(const PredictOptions& options, const OpenRun& run, bool complete, int64_t faults, double seconds) {
  const Shard& shard = run.blocks.shard;
  const int64_t blocks = run.blocks.blocks();
  const int64_t rows = std::min(run.blocks.rows, run.blocks.first_row(shard.last(blocks))) - run.blocks.first_row(shard.first(blocks));
  if (options.json) {
    boost::json::object json{
        {"schema", "serin.predict/1"}, {"model", run.place.file},    {"data", options.run.data}, {"out", options.out}, {"rows", rows},
        {"seconds", seconds},          {"shard", options.run.shard}, {"complete", complete}};
    if (complete) json["faults"] = faults;
    fmt::print("{}\n", boost::json::serialize(json));
    return;
  }
  fmt::print("{} rows in {:.1f} s ({}, {} at a time, batches of {})\n", rows, seconds, run.model->engine().note, run.blocks.threads,
             run.blocks.rows_in_block);
  if (!complete) return fmt::print("shard {} is done; the last shard writes {}\n", options.run.shard, options.out);
  if (faults > 0) fmt::print("{} rows at fault are left out: {}.errors.jsonl\n", faults, options.out);
  fmt::print("{}\n", options.out);
}

}  // namespace

int run_predict(const PredictOptions& options) {
  const OpenedRun opened = open_run(options.run);
  if (!opened.run) return fail_predict(opened.failure.error, opened.failure.exit_code);
  const OpenRun& run = *opened.run;
  std::error_code ignored;  // what cannot be looked at is named when it is opened
  if (std::filesystem::equivalent(options.out, options.run.data, ignored))
    return fail_predict(invalid(options.out + ": is the data itself; the result needs a file of its own"), kUsage);
  ColumnMap map = run.map;
  const size_t first_kept = map.columns.size();
  std::vector<std::string> names;
  for (const std::string& kept : options.keep) {
    const size_t equals = kept.find('=');
    const auto column = run.data->column(equals == std::string::npos ? kept : kept.substr(equals + 1));
    if (!column) return fail_predict(column.error().in("--keep"), kUsage);
    map.columns.push_back(*column);
    names.push_back(kept.substr(0, equals));
  }
  const bool as_table = std::filesystem::path(options.out).extension() == ".parquet";
  const auto file = (as_table ? make_parquet_result : make_result_file)(options.out, {run.model->outputs(), names, first_kept});
  if (!file) return fail_predict(file.error(), kUsage);
  const auto description = describe_run(options.run, run);
  if (!description) return fail_predict(description.error(), kUsage);
  const std::string work = options.run.work.empty() ? options.out + ".work" : options.run.work;
  const auto store = BlockStore::open(work,
                                      fmt::format("{} predict {} keep {}", *description,
                                                  std::filesystem::path(options.out).extension().string(), fmt::join(options.keep, " ")),
                                      run.blocks.shard);
  if (!store) return fail_predict(store.error(), kUsage);

  const auto began = std::chrono::steady_clock::now();
  const auto worker = [&]() -> ComputeBlock {
    return [&, worker = std::make_shared<RowWorker>(*run.model)](int64_t first, int64_t count) -> Result<std::string> {
      SERIN_TRY(const datasets::Rows rows, run.data->read(first, count, map.columns));
      const Answers answers = worker->run(*run.data, rows, map);
      SERIN_TRY(const std::string faults, fault_lines(run, rows, answers.faults));
      SERIN_TRY(const std::string encoded, (*file)->encode(rows, answers));
      return with_faults(faults, encoded);
    };
  };
  if (const Status computed = compute_blocks(run.blocks, **store, worker); !computed) return fail_predict(computed.error(), kCannotRun);
  if (const Status looked = (*store)->look_again(); !looked) return fail_predict(looked.error(), kUsage);
  int64_t faults = 0;
  const bool complete = static_cast<int64_t>((*store)->count()) == run.blocks.blocks();
  if (complete) {
    const auto joined = (*store)->complete([&]() -> Status {
      SERIN_TRY(faults, join_blocks(options, run, **file, **store));
      return {};
    });
    if (!joined) return fail_predict(joined.error(), kCannotRun);
  }
  report(options, run, complete, faults, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return kYes;
}

void add_predict(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("predict", "Run a model over all rows of a file and write its answers");
  auto options = std::make_shared<PredictOptions>();
  add_run_flags(*command, options->run);
  command->add_option("out", options->out, "result: .jsonl, .csv, .tsv, .npz or .parquet")->required();
  command->add_option("--keep", options->keep, "a column of the data that the result has, too, or NAME=COLUMN; can be given several times")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print one JSON document about the run");
  command->callback([options, &exit_code] { exit_code = run_predict(*options); });
}

}  // namespace serin::cli
