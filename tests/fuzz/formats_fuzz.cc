// libFuzzer's entry. README.md says how it is run.

#include <cstdint>

#include "tests/fuzz/formats_anything.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  serin::fuzz::formats_anything({reinterpret_cast<const char*>(data), size});
  return 0;
}
