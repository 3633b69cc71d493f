// placement.h: a Program over the memories of a host and of a device.
//
//   on_device = {conv: yes, relu: yes, NonMaxSuppression: no, ...}      // who has a kernel (plan.cc)
//   keep_islands_on_host(program, on_device);                           // what is not worth two copies
//   const std::vector<int> origin = place(program, on_device);          // copies where an operand lies in the other memory
#pragma once

#include <vector>

#include "runtime/engine/program/program.h"

namespace serin::engine {

/// A step of the device that reads what the host made alone, and whose results only the host reads, costs two copies and saves nothing: sizes and indices
/// of a few elements. Until no such step is left.
void keep_islands_on_host(const Program& program, std::vector<bool>& on_device);

/// Gives every tensor its memory and puts Transfer steps where an operand lies in the other one: each range of bytes is copied at most once in each
/// direction. Inputs and outputs of the program lie with the caller; they pass through tensors of the arena, so that what runs on the device has the same
/// addresses in every run. Those copies come first and last of all, so that what runs on the device is not cut into pieces by them. Constants get a second tensor for the device. A step of the device that decides sizes gets one output more, for these, and a copy of
/// it follows at once. Answers for each step of the new program the number it had, or -1 for a copy.
std::vector<int> place(Program& program, const std::vector<bool>& on_device);

}  // namespace serin::engine
