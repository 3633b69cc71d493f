// chain_kernels.h: from a Pointwise to the program that kernels run, to its launch, and to the text of kernels for it alone (chain_compiled.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/chain.h"
#include "kernels/cuda/launch.h"

namespace serin::kernels::cuda {

/// A Pointwise as kernels of the device see it.
struct ChainPlan {
  Chain chain;
  ChainSpace space;
  bool in_groups =
      false;  ///< whether its rows are made of whole groups; where operands are aligned to 16 bytes, too, a thread takes a group
};

/// Nothing, with the reason in `why`, where that is no chain.
std::optional<ChainPlan> plan_chain(const OpDesc& desc, std::string& why);

/// Starts a kernel for all elements; `groups`: of a group a thread.
using ChainLaunch = std::function<Fault(Stream&, const Grid&, bool groups, const ChainOperands&, const ChainSpace&)>;
std::unique_ptr<Kernel> make_chain(const ChainPlan& plan, ChainLaunch launch);

/// What to compile for a chain.
std::string chain_text(const Chain& chain);

}  // namespace serin::kernels::cuda
