// libFuzzer's entry. README.md says how it is run.

#include <cstdint>

#include "tests/fuzz/load_anything.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  serin::fuzz::load_anything({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
