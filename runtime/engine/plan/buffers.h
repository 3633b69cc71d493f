// buffers.h: decides which tensors of a Program share memory, and for how many steps each buffer must live.
//
// A view always shares memory with its base. A result may reuse the memory of an operand that is not read again (in place), if the kernel
// reads each element before it writes that element. The remaining buffers, each with an interval of steps, go to arena_memory.h.
#pragma once

#include <utility>
#include <vector>

#include "runtime/engine/plan/arena_memory.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Location of a tensor's bytes in a run.
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
  size_t offset = 0;  ///< bytes from the start of that memory
};

struct Buffers {
  std::vector<Place> places;        ///< one for each tensor
  std::vector<Interval> intervals;  ///< one for each buffer in an arena
  std::vector<Memory> memories;     ///< the arena that contains each buffer
};

Buffers assign_buffers(const Program& program);

}  // namespace serin::engine
