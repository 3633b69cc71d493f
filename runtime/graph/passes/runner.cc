// runner.cc: runs and times each pass, infers shapes, verifies the graph, and reports changes. Removed nodes and unused values are dropped
// once, at the end.

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "runtime/graph/passes/pass.h"

namespace serin::graph {
namespace {

Status check_names(const std::vector<std::unique_ptr<Pass>>& passes, const std::set<std::string, std::less<>>& disabled) {
  for (const std::string& name : disabled) {
    if (std::ranges::any_of(passes, [&](const auto& pass) { return pass->name() == name; })) continue;
    std::string known;
    for (const auto& pass : passes) known.append(known.empty() ? "" : ", ").append(pass->name());
    return Error{Code::kInvalidArgument, fmt::format("there is no pass '{}'; passes are {}", name, known)};
  }
  return {};
}

Result<bool> run_one(Graph& graph, const Pass& pass) {
  SERIN_TRY(const bool changed, pass.run(graph));
  if (!changed) return false;
  SERIN_CHECK(infer_shapes(graph));
  SERIN_CHECK(verify(graph));
  return true;
}

}  // namespace

Result<std::vector<PassTiming>> run_passes(Graph& graph, const PassOptions& options) {
  const auto passes = all_passes(options.evaluate);
  SERIN_CHECK(check_names(passes, options.disabled));
  std::vector<PassTiming> timings;
  for (const auto& pass : passes) {
    if (options.disabled.contains(pass->name())) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto changed = run_one(graph, *pass);
    if (!changed) return changed.error().in(fmt::format("pass {}", pass->name()));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    timings.push_back({std::string(pass->name()), seconds.count(), *changed});
    if (*changed && options.after_pass) options.after_pass(timings.back().name, graph);
  }
  graph.compact();
  SERIN_CHECK(infer_shapes(graph));
  return timings;
}

}  // namespace serin::graph
