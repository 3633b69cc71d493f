// functions.h: the functions of single elements by name; what each computes: functors.h. Of no library, for kernels are compiled with it at run time, too
// (kernels/cuda/nvidia/run_time.h).
#pragma once

#include <cstdint>

namespace serin::kernels {

/// y = f(x). `alpha` and `beta` mean what the function says: LeakyRelu slope, Clip bounds (alpha..beta), HardSigmoid's a and b, Elu's
/// alpha, Selu's alpha and gamma, IsInf's sign (alpha > 0: +Inf only, < 0: -Inf only, 0: both). Not, IsNaN and IsInf answer bool. Exact
/// edge cases: kernels/functors.h.
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

/// y = f(a, b), broadcast the NumPy way. The compare functions answer bool.
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
