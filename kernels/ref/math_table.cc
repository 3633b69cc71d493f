// math_table.cc: lists the operators of this family that have a reference kernel: bits, windows, transforms, random numbers, and operators
// of no other family.

#include <vector>

#include "kernels/ref/math_families.h"

namespace serin::kernels::ref {

namespace {

constexpr GenericRow kMathRows[] = {
    {"BitShift", bit_shift},
    {"BitwiseAnd", bitwise_and},
    {"BitwiseNot", bitwise_not},
    {"BitwiseOr", bitwise_or},
    {"BitwiseXor", bitwise_xor},
    {"CumProd", cum_prod},
    {"DFT", dft},
    {"Det", det},
    {"EyeLike", eye_like},
    {"PRelu", prelu},
    {"STFT", stft},
    {"Shrink", shrink},
};

std::vector<GenericRow> joined() {
  std::vector<GenericRow> rows(std::begin(kMathRows), std::end(kMathRows));
  for (const auto part : {random_kernels(), window_kernels()}) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

std::span<const GenericRow> math_kernels() {
  static const std::vector<GenericRow> kJoined = joined();
  return kJoined;
}

}  // namespace serin::kernels::ref
