// matmul.cu: MatMul of any type and any strides, without tensor cores: what cuBLASLt does not take (integers, double with an epilogue it lacks), and what the
// emulated device runs. A block makes a tile of 64 x 64 results; 16 columns of a and rows of b at a time pass through shared memory, and each thread holds
// 4 x 4 sums in registers.

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kTile = 64, kDepth = 16, kPart = 4;
constexpr int kPitch = kTile + 1;  // so that a column of a tile lies in different banks

/// a [m, k] and b [k, n] of each product; strides are in elements.
struct Matrices {
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column;
  int64_t products;
  Space<2> batch;  ///< the first elements of a and b
  float alpha;
};

template <class T>
__global__ void __launch_bounds__(kBlockThreads) multiply_tiles(Matrices p, const T* a, const T* b, T* y, Finish<T> finish) {
  using S = sum_t<T>;
  S* const tile_a = shared_memory<S>();        // [kDepth, kPitch]: transposed, rows of a side by side
  S* const tile_b = tile_a + kDepth * kPitch;  // [kDepth, kPitch]
  const int64_t tiles_n = ceil_div(p.n, kTile);
  const int64_t row = static_cast<int64_t>(blockIdx.x) / tiles_n * kTile, column = static_cast<int64_t>(blockIdx.x) % tiles_n * kTile;
  const int thread = static_cast<int>(threadIdx.x), part_row = thread / (kTile / kPart) * kPart,
            part_column = thread % (kTile / kPart) * kPart;
  for (int64_t product = blockIdx.y; product < p.products; product += gridDim.y) {
    int64_t at[2];
    p.batch.locate(product, at);
    S sums[kPart][kPart] = {};
    for (int64_t depth = 0; depth < p.k; depth += kDepth) {
      for (int i = thread; i < kTile * kDepth; i += kBlockThreads) {
        const int64_t d = depth + i % kDepth, r = row + i / kDepth;
        tile_a[i % kDepth * kPitch + i / kDepth] =
            d < p.k && r < p.m ? static_cast<S>(load(a[at[0] + r * p.a_row + d * p.a_column])) : S(0);
      }
      for (int i = thread; i < kTile * kDepth; i += kBlockThreads) {
        const int64_t d = depth + i / kTile, c = column + i % kTile;
        tile_b[i / kTile * kPitch + i % kTile] = d < p.k && c < p.n ? static_cast<S>(load(b[at[1] + d * p.b_row + c * p.b_column])) : S(0);
      }
      __syncthreads();
      for (int d = 0; d < kDepth; ++d) {
        for (int i = 0; i < kPart; ++i) {
          for (int j = 0; j < kPart; ++j)
            sums[i][j] = multiply_add(tile_a[d * kPitch + part_row + i], tile_b[d * kPitch + part_column + j], sums[i][j]);
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kPart; ++i) {
      for (int j = 0; j < kPart; ++j) {
        const int64_t r = row + part_row + i, c = column + part_column + j;
        if (r >= p.m || c >= p.n) continue;
        S sum = sums[i][j];
        if (p.alpha != 1.f) sum = static_cast<S>(static_cast<double>(p.alpha) * static_cast<double>(sum));
        const int64_t element = (product * p.m + r) * p.n + c;
        y[element] = finish(sum, element);
      }
    }
  }
}

/// Strides over the products of y of an operand's matrices, the last two dimensions left out.
Strides batch_strides(const Shape& shape, const Shape& y) {
  Shape folded = shape, products = y;
  folded[shape.rank() - 1] = folded[shape.rank() - 2] = 1;
  products[y.rank() - 1] = products[y.rank() - 2] = 1;
  Strides strides = broadcast_strides(folded, products);
  for (int64_t& stride : strides) stride *= shape[shape.rank() - 1] * shape[shape.rank() - 2];
  return strides;
}

}  // namespace

Prepared prepare_matmul(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<MatMul>(desc.op);
  const Shape &a = desc.inputs[0].shape, &b = desc.inputs[1].shape, &y = desc.outputs[0].shape;
  if (!ref::one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (a.rank() < 2 || b.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  Shape products = y;
  products[y.rank() - 1] = products[y.rank() - 2] = 1;
  const int64_t k = op.transpose_a ? a[a.rank() - 2] : a.back();
  const Matrices product{.m = y[y.rank() - 2],
                         .n = y.back(),
                         .k = k,
                         .a_row = op.transpose_a ? 1 : a.back(),
                         .a_column = op.transpose_a ? a.back() : 1,
                         .b_row = op.transpose_b ? 1 : b.back(),
                         .b_column = op.transpose_b ? b.back() : 1,
                         .products = products.elements(),
                         .batch = Space<2>(products, {batch_strides(a, y), batch_strides(b, y)}),
                         .alpha = op.alpha};
  const FinishPlan finish(op.epilogue, op.bias, op.bias ? desc.inputs[2].shape : Shape{},
                          op.epilogue.residual ? desc.inputs.back().shape : Shape{}, y);
  return ref::for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([product, finish](Stream& stream, Inputs in, Outputs out) -> Fault {
      if (product.products == 0) return kOk;
      const Grid grid{dim3(blocks_for(ceil_div(product.m, kTile) * ceil_div(product.n, kTile), 1),
                           static_cast<unsigned>(std::min<int64_t>(product.products, 65535))),
                      dim3(kBlockThreads), 2 * kDepth * kPitch * sizeof(sum_t<T>)};
      return launch(stream, grid, multiply_tiles<T>, product, in[0].as<const T>(), in[1].as<const T>(), out[0].as<T>(), finish.of<T>(in));
    });
  });
}

}  // namespace serin::kernels::cuda
