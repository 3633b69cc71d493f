// transfer.cc: copies between the host's memory and the device's, in the order of the queue.

#include "kernels/cuda/fault.h"
#include "kernels/cuda/rows.h"

namespace serin::kernels::cuda {

Prepared prepare_transfer(const OpDesc& desc, PrepareContext&, std::string&) {
  const cudaMemcpyKind kind = std::get<Transfer>(desc.op).to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  return make_kernel([kind](Stream& stream, Inputs in, Outputs out) -> Fault {
    if (in[0].bytes() == 0) return kOk;  // of a size that the data decided
    return fault_of(cudaMemcpyAsync(out[0].data, in[0].data, in[0].bytes(), kind, static_cast<cudaStream_t>(stream.queue)));
  });
}

}  // namespace serin::kernels::cuda
