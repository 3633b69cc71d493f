// commands.h: the commands of the program. Each adds itself to the command line: its flags, its help and its run function stand in one file.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// Described for users in REFERENCE.md, "Exit codes".
enum ExitCode : int {
  kYes = 0,
  kNo = 1,
  kUsage = 2,
  kCannotRun = 3,
  kRolledBack = 3,
  kInconclusive = 4,
  kUnreachable = 5,
  kInterrupted = 130
};

/// Each adds one command. When it runs, it stores its exit code.
void add_serve(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_load(CLI::App& app, int& exit_code);
void add_route(CLI::App& app, int& exit_code);
void add_rollout(CLI::App& app, int& exit_code);
void add_registry(CLI::App& app, int& exit_code);
void add_release(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_up(CLI::App& app, int& exit_code);
void add_history(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);

}  // namespace serin::cli
