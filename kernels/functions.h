// functions.h: The functions of single elements, from the rows of functions.def; functors.h defines them.
//
// It includes no library, because kernels are compiled with it at run time, too (kernels/cuda/nvidia/run_time.h).
#pragma once

#include <cstdint>

namespace serin::kernels {

/// y = f(x). `alpha` and `beta` depend on the function: LeakyRelu slope, Clip bounds (alpha..beta), HardSigmoid's a and b, Elu's alpha,
/// Selu's alpha and gamma, IsInf's sign. That sign means: alpha > 0: +Inf only, < 0: -Inf only, 0: both. Not, IsNaN and IsInf return bool.
/// Exact edge cases: kernels/functors.h.
enum class UnaryFn : uint8_t {
#define SERIN_UNARY(name, ...) k##name,
#include "kernels/functions.def"
};

/// y = f(a, b), with NumPy's broadcasting. The compare functions return bool.
enum class BinaryFn : uint8_t {
#define SERIN_BINARY(name, ...) k##name,
#include "kernels/functions.def"
};

enum class UnaryTypes : uint8_t { kEvery, kNumber, kFloat, kTruth, kTest };
enum class BinaryKind : uint8_t { kArithmetic, kCompare, kLogical };
enum class Growth : uint8_t { kFinite, kUnbounded };
enum class Loops : uint8_t { kVector, kScalar };

struct UnaryFacts {
  UnaryTypes types;
  Growth growth;
};
struct BinaryFacts {
  BinaryKind kind;
  Loops loops;
  Growth growth;
};

constexpr UnaryFacts facts_of(UnaryFn fn) {
  constexpr UnaryFacts kFacts[] = {
#define SERIN_ANY_FN(name, word, alpha, beta, epilogue, chain, finite, ...) {UnaryTypes::kEvery, Growth::k##finite},
#define SERIN_NUMBER_FN(name, word, alpha, beta, epilogue, chain, finite, ...) {UnaryTypes::kNumber, Growth::k##finite},
#define SERIN_FLOAT_FN(name, word, alpha, beta, epilogue, chain, finite, ...) {UnaryTypes::kFloat, Growth::k##finite},
#define SERIN_TRUTH_FN(name, word, alpha, beta, epilogue, chain, finite, ...) {UnaryTypes::kTruth, Growth::k##finite},
#define SERIN_TEST_FN(name, word, alpha, beta, epilogue, chain, finite, ...) {UnaryTypes::kTest, Growth::k##finite},
#include "kernels/functions.def"
  };
  return kFacts[static_cast<uint8_t>(fn)];
}

constexpr BinaryFacts facts_of(BinaryFn fn) {
  constexpr BinaryFacts kFacts[] = {
#define SERIN_ARITHMETIC_FN(name, loop, chain, finite, ...) {BinaryKind::kArithmetic, Loops::k##loop, Growth::k##finite},
#define SERIN_COMPARE_FN(name, loop, chain, finite, ...) {BinaryKind::kCompare, Loops::k##loop, Growth::k##finite},
#define SERIN_LOGICAL_FN(name, loop, chain, finite, ...) {BinaryKind::kLogical, Loops::k##loop, Growth::k##finite},
#include "kernels/functions.def"
  };
  return kFacts[static_cast<uint8_t>(fn)];
}

/// The functions that return bool; all others return their input's type.
constexpr bool is_predicate(UnaryFn fn) { return facts_of(fn).types == UnaryTypes::kTruth || facts_of(fn).types == UnaryTypes::kTest; }
constexpr bool is_compare(BinaryFn fn) { return facts_of(fn).kind == BinaryKind::kCompare; }
constexpr bool is_logical(BinaryFn fn) { return facts_of(fn).kind == BinaryKind::kLogical; }
/// Whether finite operands give a finite number.
constexpr bool keeps_finite(UnaryFn fn) { return facts_of(fn).growth == Growth::kFinite; }
constexpr bool keeps_finite(BinaryFn fn) { return facts_of(fn).kind == BinaryKind::kArithmetic && facts_of(fn).growth == Growth::kFinite; }
constexpr bool has_vector_form(BinaryFn fn) { return facts_of(fn).loops == Loops::kVector; }

}  // namespace serin::kernels
