// freed_memory.h: keeps memory that requests have freed for the next requests, and returns it to the system when it stays unused.
#pragma once

#include <cstddef>

namespace serin::cli {

/// Bodies and tensors of a few MB are freed with each request and allocated again by the next. Returning them to the system in between, as
/// malloc does, costs more than copying them. From the construction on, malloc therefore keeps them.
///
/// Memory that stays unused for a while, after a burst of large requests or a model's unload, is returned. So it counts neither against a
/// container's limit nor as load.
class FreedMemory {
 public:
  FreedMemory();
  /// Called every few seconds: returns memory that was free at each of the last calls, if it is enough to matter.
  void look();

 private:
  size_t settled_ = 0;  ///< resident bytes of the process: the least since memory was last returned
  int looks_ = 0;       ///< calls in a row at which much memory was free
};

}  // namespace serin::cli
