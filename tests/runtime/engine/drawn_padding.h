// drawn_padding.h: what prove_paddable says of graphs drawn at random, beside what the engine answers: where it says yes, zeros behind a request change nothing.
#pragma once

#include <cstdint>

#include "tests/runtime/engine/support.h"

namespace serin::engine::test {

struct Held {
  int proven = 0, compared = 0;
};

/// So many graphs, each loaded so; answers that differ by more fail the test, as does NaN where there was a number.
Held hold_padding(uint32_t graphs, const kernels::Backend& backend, const LoadOptions& options, float tolerance);

}  // namespace serin::engine::test
