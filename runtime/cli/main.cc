// main.cc: the command line. A usage mistake is one line and exit code 2.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/base/version.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/nearest_flag.h"
#include "runtime/cli/serve/serve_as.h"

namespace serin::cli {

int main(int argc, char** argv) {
  if (const auto dialect = dialect_of(argc, argv)) return serve_as(*dialect, argc, argv);
  CLI::App app("Serin: model serving with canary rollout");
  app.set_version_flag("--version", std::string(kName) + " " + std::string(kVersion));
  app.require_subcommand(1);
  int exit_code = kYes;
  add_serve(app, exit_code);
  add_check(app, exit_code);
  add_compare(app, exit_code);
  add_eval(app, exit_code);
  add_predict(app, exit_code);
  add_bench(app, exit_code);
  add_inspect(app, exit_code);
  add_plan(app, exit_code);
  add_load(app, exit_code);
  add_route(app, exit_code);
  add_rollout(app, exit_code);
  add_registry(app, exit_code);
  add_release(app, exit_code);
  add_history(app, exit_code);
  add_tune(app, exit_code);
  add_up(app, exit_code);
  add_version(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "serin: %s%s%s\n", complaint_of(app, e).c_str(), flag_meant(app, e).c_str(),
                 app.get_subcommands().empty() ? "; serin --help lists the commands" : "");
    return kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "serin: %s\n", e.what());
    return kNo;
  }
  return exit_code;
}

/// Whether standard output took all that was printed; says so if not. A server's is a log, whose reader may have gone.
bool output_is_whole() {
  struct sigaction broken_pipe = {};
  sigaction(SIGPIPE, nullptr, &broken_pipe);
  if (broken_pipe.sa_handler == SIG_IGN) return true;
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "serin: standard output was not written as a whole%s%s\n", errno ? ": " : "", errno ? std::strerror(errno) : "");
  return false;
}

}  // namespace serin::cli

int main(int argc, char** argv) {
  const int exit_code = serin::cli::main(argc, argv);
  return serin::cli::output_is_whole() ? exit_code : serin::cli::kCannotRun;
}
