// chain_interpreted.cu: Pointwise where no kernel is compiled for it at run time (chain_kernels.cu): the program is interpreted.

#include "kernels/cuda/chain.h"
#include "kernels/cuda/chain_kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"

namespace serin::kernels::cuda {

namespace {

template <int kCount>
__global__ void interpret(Chain chain, ChainOperands operands, ChainSpace space) {
  run_chain<kCount>(chain, operands, space, [&](ChainState<kCount>& state) {
#pragma unroll 1
    for (int s = 0; s < chain.steps; ++s) run_step(chain, chain.program[s], operands, space, state);
  });
}

}  // namespace

Prepared prepare_chain(const OpDesc& desc, PrepareContext&, std::string& why) {
  std::optional<ChainPlan> plan = plan_chain(desc, why);
  if (!plan) return nullptr;
  return make_chain(
      *plan, [chain = plan->chain](Stream& stream, const Grid& grid, bool groups, const ChainOperands& operands, const ChainSpace& space) {
        return launch(stream, grid, groups ? interpret<kChainGroup> : interpret<1>, chain, operands, space);
      });
}

}  // namespace serin::kernels::cuda
