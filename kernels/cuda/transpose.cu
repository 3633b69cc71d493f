// transpose.cu: StridedCopy that turns rows into columns, [batch, rows, columns] -> [batch, columns, rows]: the change between the layouts of images, and
// of products whose operand lies the other way. Read straight and written askew, or the other way round, each element would cost a memory transaction of its
// own; so tiles of 32 x 32 pass through shared memory, and both sides are runs.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kTile = 32, kLines = 8;

/// x [batch, rows, columns] with rows and columns neighbouring in it -> y [batch, columns, rows].
struct Turn {
  int64_t batch = 1, rows = 0, columns = 0;
};

template <class T>
__global__ void __launch_bounds__(kTile* kLines) turn_tiles(Turn t, const T* x, T* y) {
  T* const tile = shared_memory<T>();  // [kTile, kTile + 1]: a column lies in different banks
  const int64_t across = ceil_div(t.columns, kTile);
  const int64_t row = static_cast<int64_t>(blockIdx.x) / across * kTile, column = static_cast<int64_t>(blockIdx.x) % across * kTile;
  const int lane = static_cast<int>(threadIdx.x), line = static_cast<int>(threadIdx.y);
  for (int64_t image = blockIdx.y; image < t.batch; image += gridDim.y) {
    const T* const from = x + image * t.rows * t.columns;
    T* const to = y + image * t.rows * t.columns;
    for (int i = line; i < kTile; i += kLines) {
      if (row + i < t.rows && column + lane < t.columns) tile[i * (kTile + 1) + lane] = from[(row + i) * t.columns + column + lane];
    }
    __syncthreads();
    for (int i = line; i < kTile; i += kLines) {
      if (column + i < t.columns && row + lane < t.rows) to[(column + i) * t.rows + row + lane] = tile[lane * (kTile + 1) + i];
    }
    __syncthreads();
  }
}

/// The copy as one turn; nothing where it is any other.
std::optional<Turn> turn_of(const StridedCopy& op, const Shape& y) {
  Strides strides{};
  std::copy(op.strides.begin(), op.strides.end(), strides.begin());
  const auto space = collapse<1>(y, {strides});
  const size_t rank = space.shape.rank();
  if (rank != 2 && rank != 3) return std::nullopt;
  const int64_t columns = space.shape[rank - 2], rows = space.shape[rank - 1];
  const Turn turn{rank == 3 ? space.shape[0] : 1, rows, columns};
  const auto& from = space.strides[0];
  if (from[rank - 2] != 1 || from[rank - 1] != columns || (rank == 3 && from[0] != rows * columns)) return std::nullopt;
  return turn;
}

}  // namespace

Prepared prepare_transpose(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<StridedCopy>(desc.op);
  const auto turn = turn_of(op, desc.outputs[0].shape);
  if (!turn) return refuse(why, "not a transpose of two axes");
  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([turn = *turn, offset = op.offset](Stream& stream, Inputs in, Outputs out) -> Fault {
      const Grid grid{dim3(blocks_for(ceil_div(turn.rows, kTile) * ceil_div(turn.columns, kTile), 1),
                           static_cast<unsigned>(std::min<int64_t>(turn.batch, 65535))),
                      dim3(kTile, kLines), kTile * (kTile + 1) * sizeof(T)};
      return launch(stream, grid, turn_tiles<T>, turn, in[0].as<const T>() + offset, out[0].as<T>());
    });
  });
}

}  // namespace serin::kernels::cuda
