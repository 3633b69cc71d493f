// matmul_plain.cc: MatMul in f64 and in integers of 32 and 64 bits, without an epilogue. Panels of b are packed one by one, and each is multiplied by all rows of
// a: products in these types are rare and small, so that nothing is packed at load.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/products.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// The last two dimensions after the transpose, and how they are stepped over.
struct Steps {
  int64_t rows, columns, row, column;
  Steps(const Shape& shape, bool transposed) : rows(shape[shape.rank() - 2]), columns(shape[shape.rank() - 1]), row(columns), column(1) {
    if (transposed) std::swap(rows, columns), std::swap(row, column);
  }
  int64_t size() const { return rows * columns; }
};

/// Columns [first, first + width) of b as [k, panel], zeros after them.
template <class T>
void pack_panel(const T* b, const Steps& steps, int64_t first, int64_t width, int64_t panel, T* to) {
  for (int64_t p = 0; p < steps.rows; ++p, to += panel) {
    const T* from = b + p * steps.row + first * steps.column;
    if (steps.column == 1)
      std::copy_n(from, width, to);
    else
      for (int64_t j = 0; j < width; ++j) to[j] = from[j * steps.column];
    std::fill(to + width, to + panel, T{});
  }
}

Shape batches_of(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

template <class T>
Prepared product_kernel(const ProductLoop<T>& loop, const MatMul& op) {
  return make_kernel([loop, a_transposed = op.transpose_a, b_transposed = op.transpose_b](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Steps a(in[0].shape, a_transposed), b(in[1].shape, b_transposed);
    const Shape batch = batches_of(out[0].shape);
    struct Batch {
      const T *a, *b;
      T* y;
    };
    std::vector<Batch> products;
    for_each<2>(batch, {broadcast_strides(batches_of(in[0].shape), batch), broadcast_strides(batches_of(in[1].shape), batch)},
                [&](int64_t i, const auto& at) {
                  products.push_back({in[0].as<const T>() + at[0] * a.size(), in[1].as<const T>() + at[1] * b.size(),
                                      out[0].as<T>() + i * a.rows * b.columns});
                });
    const int64_t panels = (b.columns + loop.panel - 1) / loop.panel;
    const auto workers = static_cast<size_t>(stream.workers ? stream.workers->count() : 1), each = static_cast<size_t>(b.rows * loop.panel);
    std::vector<T> packed(workers * each);
    parallel_for(stream, static_cast<int64_t>(products.size()) * panels, [&](int64_t task, int worker) {
      const Batch& product = products[static_cast<size_t>(task / panels)];
      const int64_t first = task % panels * loop.panel, width = std::min(loop.panel, b.columns - first);
      T* panel = packed.data() + static_cast<size_t>(worker) * each;
      pack_panel(product.b, b, first, width, loop.panel, panel);
      loop.run(product.a, a.row, a.column, a.rows, panel, b.rows, product.y + first, b.columns, width);
    });
    return kOk;
  });
}

const ProductLoops& loops_for(const Simd& simd) {
#if defined(__x86_64__)
  if (simd.width == 16) return kProductsAvx512;
  if (simd.width == 8) return kProductsAvx2;
#endif
  (void)simd;
  return kProductsPortable;
}

}  // namespace

Prepared matmul_plain(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const MatMul& op = std::get<MatMul>(desc.op);
  const Epilogue& epilogue = op.epilogue;
  if (op.alpha != 1.f || op.bias || epilogue.residual || epilogue.activation != UnaryFn::kIdentity || desc.inputs.size() != 2)
    return refuse(why, "an epilogue");
  if (desc.inputs[0].shape.rank() < 2 || desc.inputs[1].shape.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  const DType dtype = desc.inputs[0].dtype;
  if (desc.inputs[1].dtype != dtype || desc.outputs[0].dtype != dtype) return refuse(why, "operands differ in dtype");
  const ProductLoops& loops = loops_for(simd);
  switch (dtype) {
    case DType::kFloat64: return product_kernel(loops.f64, op);
    case DType::kInt32:
    case DType::kUInt32: return product_kernel(loops.u32, op);
    case DType::kInt64:
    case DType::kUInt64: return product_kernel(loops.u64, op);
    default: return refuse(why, "no loop for this dtype");
  }
}

}  // namespace serin::kernels::cpu
