// eval_flags.h: the flags that say what is judged: of `serin eval`, and of commands that run it.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

/// Empty: the default, as the help of each flag says.
struct EvalFlags {
  std::string label, output, task, labels;
  bool softmax = false;
};

void add_eval_flags(CLI::App& command, EvalFlags& flags);

}  // namespace serin::cli
