// chain_compiled.h: Kernels compiled at run time, each for one chain of functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"

namespace serin::kernels::cuda {

/// Names of the two kernels in a text.
inline constexpr const char* kChainGroups = "chain_groups";
inline constexpr const char* kChainSingles = "chain_singles";

/// For launches with ChainOperands and ChainSpace (chain.h).
struct ChainKernels {
  const void* groups = nullptr;   ///< one group of elements for each thread
  const void* singles = nullptr;  ///< one element for each thread
};

/// Compiles a text. Nothing, with the reason in `why`, if that is not possible. The result stays loaded as long as the compiler exists.
using ChainCompiler = std::function<std::optional<ChainKernels>(const std::string& text, std::string& why)>;

/// A kernel that `compile` makes for that chain. Its program, its types and the layout of its operands are constants in the text; sizes are
/// not.
std::unique_ptr<Kernel> prepare_compiled_chain(const ChainCompiler& compile, const OpDesc& desc, std::string& why);

}  // namespace serin::kernels::cuda
