// describe_stages.cc: prints the stages of an interpreted model, and why its nodes are not one plan.

#include "runtime/engine/interpret/describe_stages.h"

#include <fmt/format.h>

#include "runtime/engine/interpret/runnable.h"

namespace serin::engine {

std::string label(const graph::Node& node) { return fmt::format("node '{}' ({})", node.name, graph::op_name(node.op)); }

namespace {

std::string_view why(Single::Kind kind) {
  switch (kind) {
    case Single::Kind::kKernel: return "the data decides the size of its result";
    case Single::Kind::kContents: return "elements of its operands decide the size of its result";
    case Single::Kind::kStrings: return "strings";
    case Single::Kind::kValues: return "control flow, a sequence, an optional or a picture";
  }
  return "?";
}

}  // namespace

std::string describe(const Stage& stage, const graph::Graph& graph, const std::string& indent) {
  std::string text;
  if (stage.region) {
    const Plan& plan = *stage.region->plan;
    text += fmt::format("{}  planned: {} nodes as {} steps, arena {} bytes\n", indent, stage.nodes.size() - stage.singles.size(),
                        plan.steps.size(), plan.arena_bytes);
  }
  for (const Single& single : stage.singles)
    text += fmt::format("{}  interpreted: {}: {}\n", indent, label(graph.node(single.node)), why(single.kind));
  return text;
}

std::string describe_stages(const Block& block, const Plan::Context& context, const std::string& indent) {
  StageContext stages(block, context);
  Stage start;
  const auto stage = first_stage(stages, start);
  std::string text;
  size_t waiting = block.order.size();
  if (stage) {
    text += describe(**stage, block.graph, indent);
    waiting -= (*stage)->nodes.size();
  }
  if (waiting > 0)
    text += fmt::format("{}  {} nodes wait for sizes that are known only during a run, and are planned then\n", indent, waiting);
  for (const auto& [id, bodies] : block.bodies) {
    for (const auto& body : bodies)
      text += fmt::format("{}  a body of {}:\n{}", indent, label(block.graph.node(id)), describe_stages(*body, context, indent + "    "));
  }
  return text;
}

}  // namespace serin::engine
