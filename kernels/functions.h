// functions.h: The names of the functions of single elements; functors.h defines them.
//
// It includes no library, because kernels are compiled with it at run time, too (kernels/cuda/nvidia/run_time.h).
#pragma once

#include <cstdint>

namespace serin::kernels {

/// y = f(x). `alpha` and `beta` depend on the function: LeakyRelu slope, Clip bounds (alpha..beta), HardSigmoid's a and b, Elu's alpha,
/// Selu's alpha and gamma, IsInf's sign. That sign means: alpha > 0: +Inf only, < 0: -Inf only, 0: both. Not, IsNaN and IsInf return bool.
/// Exact edge cases: kernels/functors.h.
enum class UnaryFn : uint8_t {
  kIdentity,
  kAbs,
  kNeg,
  kSign,
  kReciprocal,
  kSqrt,
  kExp,
  kLog,
  kErf,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kTanh,
  kSigmoid,
  kRelu,
  kLeakyRelu,
  kClip,
  kElu,
  kSelu,
  kCelu,
  kThresholdedRelu,
  kSoftplus,
  kSoftsign,
  kMish,
  kHardSigmoid,
  kHardSwish,
  kSilu,
  kGelu,
  kGeluTanh,
  kFloor,
  kCeil,
  kRound,
  kNot,
  kIsNaN,
  kIsInf,
};

/// y = f(a, b), with NumPy's broadcasting. The compare functions return bool.
enum class BinaryFn : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMod,
  kFMod,
  kMin,
  kMax,
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor
};

}  // namespace serin::kernels
