// process.h: what the process takes that no plan knows: the program's own memory, and the objects that describe a model.
#pragma once

#include <algorithm>
#include <cstddef>

namespace serin::planner {

/// Resident bytes of this process now.
struct Resident {
  size_t own = 0;    ///< heap, stacks, code that kernels generate
  size_t files = 0;  ///< pages of the program and its libraries
};
Resident resident();

// The rest, which no function knows beforehand, was measured on models of tests/models.txt that a server answered from (README.md). These are
// the smallest round numbers with which no plan was too small.

/// Of `serin serve` without a model, over those of this process before it plans: sockets, metrics, threads.
inline constexpr size_t kServerBytes = size_t{4} << 20;
/// Pages of the program that only a run touches, for each model.
inline constexpr size_t kRunBytes = size_t{1} << 20;
/// The part of its stack that a thread touches.
inline constexpr size_t kStackBytes = size_t{128} << 10;
/// Each instance plans a new size on its own thread, whose heap keeps some of what that took: so many times the structures.
inline constexpr double kPlanningOfAnInstance = 1.5;
/// Copies of a request and its answer: as bytes of a message, and as tensors.
inline constexpr size_t kCopiesOfARequest = 2;
/// JSON has up to 21 digits and signs for a float of 4 bytes.
inline constexpr double kBytesOfText = 5.25;

/// Memory that heaps keep free after requests of `bytes`: malloc may keep 16 MiB (runtime/cli/serve/freed_memory.cc).
inline constexpr size_t kept_free(size_t bytes) { return std::min(size_t{16} << 20, bytes); }

}  // namespace serin::planner
