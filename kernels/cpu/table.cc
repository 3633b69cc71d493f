// table.cc: which kernel runs an operator on the CPU. For each kind the rows are tried from left to right; the first that accepts runs it,
// and the last accepts whatever can be computed at all.

#include "kernels/backend.h"
#include "kernels/ref/ref.h"

namespace serin::kernels {

namespace {

using PrepareFn = std::unique_ptr<Kernel> (*)(const OpDesc&, PrepareContext&, std::string& why);
using Rows = std::vector<KernelRow>;

KernelRow ref_row(PrepareFn prepare) {
  return {"ref", prepare};
}

/// In the order of kernels::Op.
KernelTable reference_table() {
  return {
      Rows{ref_row(ref::unary)},         // Unary
      Rows{ref_row(ref::binary)},        // Binary
      Rows{ref_row(ref::select)},        // Select
      Rows{ref_row(ref::cast)},          // Cast
      Rows{ref_row(ref::conv)},          // Conv
      Rows{ref_row(ref::matmul)},        // MatMul
      Rows{ref_row(ref::pool)},          // Pool
      Rows{ref_row(ref::reduce)},        // Reduce
      Rows{ref_row(ref::softmax)},       // Softmax
      Rows{ref_row(ref::layer_norm)},    // LayerNorm
      Rows{ref_row(ref::batch_norm)},    // BatchNorm
      Rows{ref_row(ref::strided_copy)},  // StridedCopy
      Rows{ref_row(ref::concat)},        // Concat
      Rows{ref_row(ref::pad)},           // Pad
      Rows{ref_row(ref::gather)},        // Gather
      Rows{ref_row(ref::arg_max)},       // ArgMax
      Rows{ref_row(ref::non_zero)},      // NonZero
      Rows{ref_row(ref::cum_sum)},       // CumSum
  };
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, std::string* note) {
  const std::string name = "cpu " + std::string(options.reference_only ? "ref" : isa_name(options.isa));
  if (note) *note = name;
  return std::make_unique<Backend>(name, reference_table());
}

}  // namespace serin::kernels
