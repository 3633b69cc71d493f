// buffers.h: which tensors of a Program share memory, and for how long each piece must live.
//
// A view shares with its base, always. A result may take over the memory of an operand that nobody reads again (in place), where the kernel
// reads each element before it writes that element. What remains are buffers with an interval of steps each, for arena_memory.h.
#pragma once

#include <utility>
#include <vector>

#include "runtime/engine/plan/arena_memory.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Where the bytes of a tensor are in a run.
struct Place {
  enum class In : uint8_t {
    kNowhere,   ///< never read or written
    kArena,     ///< index: of a buffer in the arena of the tensor's memory
    kInput,     ///< index: of the caller's tensor
    kOutput,    ///< the same
    kConstant,  ///< index: the tensor that has the constant
  };
  In in = In::kNowhere;
  int index = 0;
  size_t offset = 0;  ///< bytes from the start of that
};

struct Buffers {
  std::vector<Place> places;        ///< one for each tensor
  std::vector<Interval> intervals;  ///< one for each buffer in an arena
  std::vector<Memory> memories;     ///< in which of the two arenas each of them lies
};

Buffers assign_buffers(const Program& program);

}  // namespace serin::engine
