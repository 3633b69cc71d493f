// child.h: runs another command of this program and waits for it. A model that crashes then crashes a process of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::cli {

/// Ctrl-C, or a pipeline that is being ended. Thrown where a release waits; its journal stays, so the next run goes on there.
struct ReleaseInterrupted {};

/// How a command ended.
struct ChildEnd {
  int exit_code = 0;
  int signal = 0;        ///< that killed it; 0: none
  std::string out, err;  ///< the last 16 MiB of what it printed

  /// The last line on standard error, without the name of the program: why it failed. With a signal: "was killed by signal 11 (...)".
  std::string why() const;
};

/// Starts `serin ARGUMENTS` with these files for its output, and returns its process. `death`: signal that it gets when this process dies.
/// `append`: what is in the files stays. Errors: kIo.
Result<pid_t> start_serin(const std::vector<std::string>& arguments, const std::string& out, const std::string& err, bool append,
                          int death);

/// Runs `serin ARGUMENTS`. Its output lies in `folder` meanwhile. It is killed when this process dies. Needs block_end_signals(), and throws
/// ReleaseInterrupted after it has ended the command. Errors: kIo.
Result<ChildEnd> run_serin(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace serin::cli
