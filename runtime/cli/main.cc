// main.cc: the command line. Binds flags to the structs of commands.h and calls one function; a usage mistake is one line and exit code 2.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "runtime/base/version.h"
#include "runtime/cli/commands.h"

namespace serin::cli {
namespace {}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Serin: model serving with canary rollout");
  app.set_version_flag("--version", std::string(kName) + " " + std::string(kVersion));
  app.require_subcommand(1);
  int exit_code = kYes;
  (void)exit_code;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "serin: %s\n", e.what());
    return kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "serin: %s\n", e.what());
    return kNo;
  }
  return exit_code;
}

}  // namespace serin::cli

int main(int argc, char** argv) { return serin::cli::main(argc, argv); }
