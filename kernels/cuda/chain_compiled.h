// chain_compiled.h: kernels that are made at run time, each for one chain of functions.
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

/// To be launched with ChainOperands and ChainSpace (chain.h).
struct ChainKernels {
  const void* groups = nullptr;   ///< takes a group of elements a thread
  const void* singles = nullptr;  ///< one element a thread
};

/// Compiles a text. Nothing, with the reason in `why`, where that is not possible. What it made stays loaded as long as it lives.
using ChainCompiler = std::function<std::optional<ChainKernels>(const std::string& text, std::string& why)>;

/// A kernel that `compile` makes for that chain. All that depends on its program, its types and how its operands lie is a constant in the text; sizes are not.
std::unique_ptr<Kernel> prepare_compiled_chain(const ChainCompiler& compile, const OpDesc& desc, std::string& why);

}  // namespace serin::kernels::cuda
