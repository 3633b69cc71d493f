// freed_memory.h: what becomes of memory that requests have freed.
#pragma once

#include <cstddef>

namespace serin::cli {

/// Bodies and tensors of a few MB are freed with each request and wanted again by the next: to hand them back to the system meanwhile, as malloc does,
/// costs more than copying them. So from the construction on malloc keeps them; and what nobody wants for a while, after a burst of large requests or a
/// model's unload, goes back after all, so that it counts neither against a container's limit nor as load.
class FreedMemory {
 public:
  FreedMemory();
  /// Every few seconds: hands back what lay free at each of the last looks, where that is worth it.
  void look();

 private:
  size_t settled_ = 0;  ///< bytes of the process in memory: the least since memory was last handed back
  int looks_ = 0;       ///< in a row at which much lay free
};

}  // namespace serin::cli
