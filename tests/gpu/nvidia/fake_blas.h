// fake_blas.h: A cuBLASLt for the emulated device. It checks every argument of the functions that kernels/cuda calls, and computes by a plain loop.
//
//   fake_blas::rules.fuses = [](cublasLtEpilogue_t, int64_t rows) { return rows % 8 == 0; };   // has no algorithm for the rest
//   ... prepare and run ...
//   EXPECT_GT(fake_blas::products, 0u);
//
// It refuses, with a line on stderr, a product that differs from the one its algorithm was made for, operands and a workspace that begin where
// the algorithm does not expect them, layouts that do not fit together, a bias without a type, and a stream of another device. An address outside of
// the device's memory ends the program. Each product overwrites its workspace, so a workspace that overlaps an operand shows.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <functional>

namespace fake_blas {

struct Rules {
  /// Whether there are algorithms with that epilogue for a result of so many rows (the library's rows, so our columns).
  std::function<bool(cublasLtEpilogue_t, int64_t rows)> fuses;
  /// Whether there are algorithms for operands that begin at multiples of so many bytes.
  std::function<bool(uint32_t alignment)> takes;
  /// After how many more calls one fails for lack of memory; negative: never.
  int calls_before_failure = -1;
};
extern Rules rules;

extern uint64_t products, refusals;  ///< so far

}  // namespace fake_blas
