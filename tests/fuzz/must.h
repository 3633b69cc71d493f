// must.h: what fuzzers hold to be true whatever comes in.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace serin::fuzz {

/// Ends the program where it is not so: a finding.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace serin::fuzz
