// load_anything.h: what a fuzzer asks of the loader: any bytes are read, optimised, planned and run, or refused. Nothing else may happen.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/graph/graph.h"

namespace serin::fuzz {

/// Bounds are so tight that a file which costs seconds or gigabytes is a finding.
void load_anything(std::span<const std::byte> file);
/// The same from what a reader made of a file.
void run_anything(graph::Graph graph);

}  // namespace serin::fuzz
