// placement.h: distributes a Program over the memories of host and device.
//
//   on_device = {conv: yes, relu: yes, NonMaxSuppression: no, ...}      // the device has a kernel (plan.cc)
//   keep_islands_on_host(program, on_device);                           // steps that are not worth two copies
//   const std::vector<int> origin = place(program, on_device);          // copies if an operand lies in the other memory
#pragma once

#include <vector>

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Moves steps to the host that read only host data and whose results only the host reads, such as sizes and indices of a few elements. On
/// the device they would cost two copies and save nothing. It repeats until no such step is left.
void keep_islands_on_host(const Program& program, std::vector<bool>& on_device);

/// Gives every tensor its memory and inserts Transfer steps for operands that lie in the other one. Each range of bytes is copied at most
/// once in each direction. Constants get a second tensor for the device.
///
/// Inputs and outputs of the program lie in the caller's memory. They pass through tensors of the arena, so that device steps use the same
/// addresses in every run. Those copies come first and last, so that they do not split the device's steps.
///
/// A device step that decides sizes gets one more output for them, and a copy of it follows at once. Returns, for each step of the new
/// program, its old number, or -1 for a copy.
std::vector<int> place(Program& program, const std::vector<bool>& on_device);

}  // namespace serin::engine
