// remade.cc: kernels whose preparation needs sizes, for operators whose sizes only the run knows. The description gets the shapes of the
// run's views, and a kernel is prepared from it, run and discarded. For an elementwise function or a Gather that takes a few hundred
// nanoseconds on the host, compared with a launch of microseconds.

#include <utility>

#include "kernels/cuda/table.h"

namespace serin::kernels::cuda {

namespace {

using Prepare = std::unique_ptr<Kernel> (*)(const OpDesc&, PrepareContext&, std::string& why);

class RemadeKernel final : public Kernel {
 public:
  RemadeKernel(const OpDesc& desc, Prepare prepare, std::unique_ptr<Kernel> at_bounds)
      : desc_(desc), prepare_(prepare), at_bounds_(std::move(at_bounds)) {
    for (TensorDesc& input : desc_.inputs) input.constant = {};  // there while preparing, not in a run
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    OpDesc desc = desc_;
    int64_t elements = 0;
    for (size_t i = 0; i < in.size(); ++i) desc.inputs[i].shape = in[i].shape;
    for (size_t i = 0; i < out.size(); ++i) elements += (desc.outputs[i].shape = out[i].shape).elements();
    if (elements == 0) return kOk;
    PrepareContext context;
    std::string why;
    const std::unique_ptr<Kernel> kernel = prepare_(desc, context, why);
    return kernel ? kernel->run(stream, in, out) : Fault("cannot be run at these sizes: " + why);
  }
  std::string explain(int64_t detail) const override { return at_bounds_->explain(detail); }
  uint32_t packed_inputs() const override { return at_bounds_->packed_inputs(); }

 private:
  OpDesc desc_;
  const Prepare prepare_;
  const std::unique_ptr<Kernel> at_bounds_;
};

}  // namespace

KernelRow row_of_remade(std::string name, Prepare prepare) {
  return {std::move(name), [prepare](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            if (any_operand(desc, is_string)) return refuse(why, "its elements are strings");
            std::unique_ptr<Kernel> kernel = prepare(desc, context, why);
            if (!kernel || !any_operand(desc, is_sized_by_data)) return kernel;
            if (kernel->scratch_bytes() != 0) return refuse(why, "its sizes depend on the data, and it needs scratch");
            return std::make_unique<RemadeKernel>(desc, prepare, std::move(kernel));
          }};
}

}  // namespace serin::kernels::cuda
