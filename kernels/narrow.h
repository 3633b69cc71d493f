// narrow.h: The element types of at most eight bits that C++ lacks: five floats of 8 bits, one of 4, integers of 4 and 2.
//
// In memory each element has its own byte. Integers are stored as values (an i4 of -3 is the byte 0xfd, so that it reads as an i8). Floats
// are stored as their bits, with zeros above. Only the low bits of input from outside are read. All values are exact in float and double:
// kernels compute with those and convert when loading and storing.
//
//   float      exponent  fraction  bias  largest   Inf   NaN               zero
//   f8e4m3fn      4         3        7     448     no    0x7f, 0xff        +0 -0
//   f8e4m3fnuz    4         3        8     240     no    0x80              +0
//   f8e5m2        5         2       15    57344    yes   0x7d..7f, fd..ff  +0 -0
//   f8e5m2fnuz    5         2       16    57344    no    0x80              +0
//   f8e8m0        8         0      127    2^127    no    0xff              none: every value is a positive power of two
//   f4e2m1        2         1        1       6     no    none              +0 -0
//
// Conversion follows ONNX's Cast: to nearest, ties to even, with subnormals. Beyond the largest value, including infinities, a float either
// saturates or becomes the type's infinity, or its NaN if it has none. f4e2m1 always saturates and turns NaN into -0.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/tensor.h"

namespace serin::kernels {

constexpr bool is_narrow_integer(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUInt4 || dtype == DType::kInt2 || dtype == DType::kUInt2;
}
constexpr bool is_narrow_float(DType dtype) { return dtype >= DType::kFloat8E4M3FN && dtype <= DType::kFloat4E2M1; }
constexpr bool is_narrow(DType dtype) { return is_narrow_integer(dtype) || is_narrow_float(dtype); }

/// Bits of one element in the packed form of files; 0 for strings.
constexpr int dtype_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4: return 4;
    case DType::kInt2:
    case DType::kUInt2: return 2;
    default: return static_cast<int>(dtype_size(dtype)) * 8;
  }
}

/// Bytes of `elements` stored without gaps, the first in the low bits.
constexpr size_t packed_bytes(DType dtype, size_t elements) {
  const auto per_byte = static_cast<size_t>(8 / dtype_bits(dtype));  // requires a narrow dtype
  return elements / per_byte + (elements % per_byte != 0);
}

/// The byte in memory of an element with these low bits: signed integers get their sign, everything else zeros above.
constexpr uint8_t narrow_byte(DType dtype, uint8_t bits) {
  switch (dtype) {
    case DType::kInt4: return static_cast<uint8_t>(((bits & 0xf) ^ 0x8) - 0x8);
    case DType::kInt2: return static_cast<uint8_t>(((bits & 0x3) ^ 0x2) - 0x2);
    case DType::kUInt4:
    case DType::kFloat4E2M1: return bits & 0xf;
    case DType::kUInt2: return bits & 0x3;
    default: return bits;
  }
}

/// An integer wraps into the type's bits.
constexpr uint8_t narrow_from_integer(DType dtype, int64_t x) { return narrow_byte(dtype, static_cast<uint8_t>(x)); }

/// The layout of a float in at most eight bits.
struct NarrowFormat {
  int fraction;      ///< bits
  int least;         ///< exponent of the smallest normal number
  uint8_t largest;   ///< the code of the largest finite value
  uint8_t beyond;    ///< the code for larger values that do not saturate: Inf or NaN
  uint8_t nan;       ///< a positive NaN
  uint8_t sign;      ///< the sign bit
  bool signed_zero;  ///< else the code of -0 is the NaN
};

constexpr NarrowFormat narrow_format(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN: return {3, -6, 0x7e, 0x7f, 0x7f, 0x80, true};
    case DType::kFloat8E4M3FNUZ: return {3, -7, 0x7f, 0x80, 0x80, 0x80, false};
    case DType::kFloat8E5M2: return {2, -14, 0x7b, 0x7c, 0x7e, 0x80, true};
    case DType::kFloat8E5M2FNUZ: return {2, -15, 0x7f, 0x80, 0x80, 0x80, false};
    default: return {1, 0, 0x07, 0x07, 0x08, 0x08, true};  // f4e2m1
  }
}

/// Rounding of a value between two powers of two: away from zero, toward zero, or to the nearer one (half way: away from zero).
enum class RoundMode : uint8_t { kUp, kDown, kNearest };
constexpr std::optional<RoundMode> find_round_mode(std::string_view name) {
  if (name == "up") return RoundMode::kUp;
  if (name == "down") return RoundMode::kDown;
  if (name == "nearest") return RoundMode::kNearest;
  return std::nullopt;
}

/// The exponent type, of |x|: it has no sign. Zero and values that are too small become the smallest power with `saturate`, otherwise NaN.
inline uint8_t e8m0_from_double(double x, bool saturate, RoundMode mode) {
  constexpr uint8_t kNan = 0xff, kLargest = 0xfe;
  if (std::isnan(x)) return kNan;
  const double magnitude = std::fabs(x);
  if (std::isinf(x)) return saturate ? kLargest : kNan;
  if (magnitude < 0x1p-127) return saturate ? 0 : kNan;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1): magnitude = fraction * 2^exponent
  const bool round_up = mode == RoundMode::kUp ? fraction > 0.5 : mode == RoundMode::kNearest && fraction >= 0.75;
  const int code = exponent - 1 + 127 + round_up;
  if (code > kLargest) return saturate ? kLargest : kNan;
  return static_cast<uint8_t>(code);
}

/// A float type of 8 or 4 bits other than e8m0. Integers are converted to double first.
inline uint8_t narrow_from_double(DType dtype, double x, bool saturate) {
  const NarrowFormat format = narrow_format(dtype);
  const bool negative = std::signbit(x);
  const uint8_t sign = negative ? format.sign : uint8_t{0};
  if (std::isnan(x)) return format.signed_zero ? format.nan | sign : format.nan;
  const double magnitude = std::fabs(x);
  int code = format.largest + 1;
  if (magnitude < 0x1p17) {  // above every type's range
    int exponent = format.least;
    if (magnitude >= std::ldexp(1.0, format.least)) exponent = std::ilogb(magnitude);
    const double steps = std::nearbyint(std::ldexp(magnitude, format.fraction - exponent));  // exact except for this rounding
    code = ((exponent - format.least) << format.fraction) + static_cast<int>(steps);         // a carry correctly goes into the exponent
  }
  if (code > format.largest) {
    if (saturate || dtype == DType::kFloat4E2M1) return format.largest | sign;
    return format.beyond | sign;
  }
  if (code == 0 && !format.signed_zero) return 0;
  return static_cast<uint8_t>(code | sign);
}

/// The value of an element of any narrow type. Exact.
inline double narrow_to_double(DType dtype, uint8_t byte) {
  const uint8_t bits = narrow_byte(dtype, byte);
  if (dtype == DType::kInt4 || dtype == DType::kInt2) return static_cast<int8_t>(bits);
  if (dtype == DType::kUInt4 || dtype == DType::kUInt2) return bits;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::kFloat8E8M0) return bits == 0xff ? kNan : std::ldexp(1.0, bits - 127);
  const NarrowFormat format = narrow_format(dtype);
  const bool negative = (bits & format.sign) != 0;
  const int code = bits & (format.sign - 1);
  if (!format.signed_zero && negative && code == 0) return kNan;
  if (code > format.largest) {
    const bool infinite = dtype == DType::kFloat8E5M2 && code == format.beyond;
    return std::copysign(infinite ? std::numeric_limits<double>::infinity() : kNan, negative ? -1.0 : 1.0);
  }
  const int field = code >> format.fraction, fraction = code & ((1 << format.fraction) - 1);
  const double value = field == 0 ? std::ldexp(fraction, format.least - format.fraction)
                                  : std::ldexp(fraction + (1 << format.fraction), format.least + field - 1 - format.fraction);
  return negative ? -value : value;
}

/// The value of each byte, for kernels that read many.
inline std::array<float, 256> narrow_values(DType dtype) {
  std::array<float, 256> values{};
  for (size_t byte = 0; byte < values.size(); ++byte)
    values[byte] = static_cast<float>(narrow_to_double(dtype, static_cast<uint8_t>(byte)));
  return values;
}

}  // namespace serin::kernels
