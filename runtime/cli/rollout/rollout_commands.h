// rollout_commands.h: the subcommands of `serin rollout` that are no plain calls of the admin API. Each adds its flags and its run function.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// `validate` and `import`.
void add_rollout_files(CLI::App& group, int& exit_code);
/// `apply` and `diff`.
void add_apply(CLI::App& group, int& exit_code);
void add_simulate(CLI::App& group, int& exit_code);
void add_drill(CLI::App& group, int& exit_code);
void add_schema(CLI::App& group, int& exit_code);

}  // namespace serin::cli
