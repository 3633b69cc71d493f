// version.cc: `serin version`: which program this is, and what of this machine it can use. A bug report begins with it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/loader.h"
#include "runtime/base/version.h"
#include "runtime/cli/commands.h"
#include "serin_commit.h"  // written by cmake/commit.cmake

namespace serin::cli {
namespace {

/// Each says what was found, or why nothing was.
struct Found {
  std::vector<std::string> instruction_sets;
  std::string onednn, cuda;
  bool has_cuda = false;
};

Found look() {
  Found found;
  for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512})
    if (isa <= kernels::best_isa()) found.instruction_sets.emplace_back(kernels::isa_name(isa));
  if (kernels::multiplies_bf16()) found.instruction_sets.emplace_back("bf16");
  std::string note;
  kernels::make_cpu_backend({}, &note);
  found.onednn = note.substr(std::min(note.find(", ") + 2, note.size()));  // "cpu avx512, oneDNN 3.2.0"
  found.has_cuda = kernels::make_cuda_backend({}, &found.cuda) != nullptr;
  return found;
}

int run_version(bool json) {
  const Found found = look();
  constexpr const char* kCompiler = "GCC " __VERSION__;
  if (!json) {
    fmt::print("{} {}\ncommit: {}\ncompiler: {}\ninstruction sets: {}\noneDNN: {}\nCUDA: {}\n", kName, kVersion, kCommit, kCompiler,
               fmt::join(found.instruction_sets, ", "), found.onednn, found.cuda);
    return kYes;
  }
  const std::string prefix = "oneDNN ";
  const bool has_onednn = found.onednn.starts_with(prefix);
  boost::json::object text{{"version", kVersion}, {"commit", kCommit}, {"compiler", kCompiler}};
  text["instruction_sets"] = boost::json::array(found.instruction_sets.begin(), found.instruction_sets.end());
  text["onednn"] = has_onednn ? boost::json::value(found.onednn.substr(prefix.size())) : boost::json::value(nullptr);
  text["cuda"] = found.has_cuda ? boost::json::value(found.cuda) : boost::json::value(nullptr);
  fmt::print("{}\n", boost::json::serialize(text));
  return kYes;
}

}  // namespace

void add_version(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("version", "Print version, commit, compiler, instruction sets, oneDNN and CUDA");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([json, &exit_code] { exit_code = run_version(*json); });
}

}  // namespace serin::cli
