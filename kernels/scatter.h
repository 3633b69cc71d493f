// scatter.h: Combines an update of ScatterElements and ScatterND with the old value: one source for all backends.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/functors.h"

namespace serin::kernels {

/// Nothing: an update replaces the old value.
using Join = std::optional<BinaryFn>;

/// The attribute `reduction`; false if it has an unknown value.
inline bool find_join(std::string_view name, Join& join) {
  join = name == "add"   ? Join(BinaryFn::kAdd)
         : name == "mul" ? Join(BinaryFn::kMul)
         : name == "max" ? Join(BinaryFn::kMax)
         : name == "min" ? Join(BinaryFn::kMin)
                         : Join();
  return join || name == "none";
}

template <class T>
SERIN_HD inline T joined(BinaryFn fn, T old, T update) {
  if constexpr (std::is_same_v<T, bool>)
    return fn == BinaryFn::kAdd || fn == BinaryFn::kMax ? old || update : old && update;
  else
    return cast<T>(binary(fn, load(old), load(update)));
}

}  // namespace serin::kernels
