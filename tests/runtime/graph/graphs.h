// graphs.h: graphs written down in tests as a person would draw them, at whatever indentation the test has, before and after passes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/graph/graph.h"
#include "runtime/graph/passes/pass.h"

namespace serin::graph {

/// Drops a first empty line, the indentation that all lines share, and what stands before the closing quotes.
inline std::string dedent(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min({indent, line.size(), line.find_first_not_of(' ')}));
    if (!line.empty() || !text.empty()) result.append(line).append("\n");
  }
  return result;
}

/// Parsed, verified and inferred; a test that writes nonsense by mistake stops here.
inline Graph graph_of(std::string_view text) {
  auto graph = parse(dedent(text));
  if (!graph) throw std::runtime_error(graph.error().message);
  if (auto status = verify(*graph); !status) throw std::runtime_error(status.error().message);
  if (auto status = infer_shapes(*graph); !status) throw std::runtime_error(status.error().message);
  return std::move(*graph);
}

/// Runs a pass: the graph stays one, and the pass says whether it changed something.
inline Status apply(const Pass& pass, Graph& graph) {
  const std::string before = print(graph);
  SERIN_TRY(const bool changed, pass.run(graph));
  EXPECT_EQ(changed, print(graph) != before) << "a pass says whether it changed something";
  const auto inferred = infer_shapes(graph);
  EXPECT_TRUE(inferred) << (inferred ? "" : inferred.error().message);
  const auto verified = verify(graph);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
  return {};
}

/// What one pass makes of a graph, or why it refuses.
inline std::string after(const Pass& pass, std::string_view text) {
  Graph graph = graph_of(text);
  const Status applied = apply(pass, graph);
  return applied ? print(graph) : applied.error().message;
}

inline bool leaves(const Pass& pass, std::string_view text) { return after(pass, text) == print(graph_of(text)); }

/// What shape inference says against the graph; empty where it says nothing.
inline std::string refusal(std::string_view text) {
  auto graph = parse(dedent(text));
  if (!graph) return "parse: " + graph.error().message;
  if (auto status = verify(*graph); !status) return "verify: " + status.error().message;
  auto status = infer_shapes(*graph);
  return status ? "" : status.error().message;
}

/// Type of the first output, as text.
inline std::string output_type(std::string_view text) {
  const Graph graph = graph_of(text);
  return print(graph.value(graph.outputs()[0]).type);
}

}  // namespace serin::graph
