// chain_kernels.h: Turns a Pointwise into the program that kernels run, launches it, and writes the text of kernels for it
// (chain_compiled.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/launch.h"

namespace serin::kernels::cuda {

/// A Pointwise in the form for the device's kernels.
struct ChainPlan {
  Chain chain;
  ChainSpace space;
  bool in_groups =
      /// Whether its rows consist of whole groups. If operands are also aligned to 16 bytes, a thread takes a group.
      false;
};

/// Nothing, with the reason in `why`, if it is not a chain.
std::optional<ChainPlan> plan_chain(const OpDesc& desc, std::string& why);

/// Starts a kernel for all elements; `groups`: one group for each thread.
using ChainLaunch = std::function<Fault(Stream&, const Grid&, bool groups, const ChainOperands&, const ChainSpace&)>;
std::unique_ptr<Kernel> make_chain(const ChainPlan& plan, ChainLaunch launch);

/// The text to compile for a chain.
std::string chain_text(const Chain& chain);

}  // namespace serin::kernels::cuda
