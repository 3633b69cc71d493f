// describe_stages.h: what of an interpreted model is planned and what is not, in words.
#pragma once

#include <string>

#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

/// "  planned: 14 nodes as 9 steps, arena 4096 bytes", then a line for each node that runs by itself, and why.
std::string describe(const Stage& stage, const graph::Graph& graph, const std::string& indent);

/// What is known before a run: the first stage, with every unknown size at 1, and how much waits for it; bodies below their nodes.
std::string describe_stages(const Block& block, const Plan::Context& context, const std::string& indent = "");

}  // namespace serin::engine
