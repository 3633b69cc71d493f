#include "runtime/cli/offline/eval_flags.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "runtime/cli/offline/eval_task.h"

namespace serin::cli {

void add_eval_flags(CLI::App& command, EvalFlags& flags) {
  command.add_option("--label", flags.label, "column with the truth; default: label, or annotations");
  command.add_option("--output", flags.output, "output of the model to judge; default: the only one");
  command
      .add_option("--task", flags.task,
                  "classification, regression, text, detection, embedding or segmentation; default: by the output and the labels")
      ->check(CLI::IsMember(std::vector<std::string>(kEvalTasks.begin(), kEvalTasks.end())));
  command.add_option("--labels", flags.labels, "file with the names of the classes of a model's scores, one a line");
  command.add_flag("--softmax", flags.softmax, "scores are made probabilities");
}

}  // namespace serin::cli
