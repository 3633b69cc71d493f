// describe_stages.h: describes as text which parts of an interpreted model are planned and which are not.
#pragma once

#include <string>

#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

/// Returns "node 'conv1' (Conv)".
std::string label(const graph::Node& node);

/// Prints "  planned: 14 nodes as 9 steps, arena 4096 bytes", then a line for each node that runs by itself, with the reason.
std::string describe(const Stage& stage, const graph::Graph& graph, const std::string& indent);

/// Prints what is known before a run: the first stage, with every unknown size at 1, and the number of later nodes. Bodies are printed
/// below their nodes.
std::string describe_stages(const Block& block, const Plan::Context& context, const std::string& indent = "");

}  // namespace serin::engine
