// transpose.cu: StridedCopy that turns rows into columns, [batch, rows, columns] -> [batch, columns, rows]: the change between the layouts of images, and
// of products whose operand lies the other way. Read straight and written askew, or the other way round, each element would cost a memory transaction of its
// own; so tiles of 32 x 32 pass through shared memory, and both sides are runs. Of few rows, as the colours of a picture, a thread takes 16 bytes of each,
// and writes them as one run.

#include "kernels/cuda/launch.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/pack.h"
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

/// kRows rows and columns in multiples of a pack.
template <int kRows, class T>
__global__ void turn_few_rows(Turn t, const T* x, T* y) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  const int64_t packs = t.columns / kPack;
  for (int64_t i = first_element(); i < t.batch * packs; i += element_step()) {
    const int64_t image = i / packs, column = (i - image * packs) * kPack;
    const T* const from = x + image * kRows * t.columns + column;
    Pack<T, kPack> rows[kRows], turned;
#pragma unroll
    for (int row = 0; row < kRows; ++row) rows[row] = load_pack<kPack>(from + row * t.columns);
    T* const to = y + (image * t.columns + column) * kRows;
#pragma unroll
    for (int p = 0; p < kRows; ++p) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) turned.values[k] = rows[(p * kPack + k) % kRows].values[(p * kPack + k) / kRows];
      store_pack(to + p * kPack, turned);
    }
  }
}

template <int kRows, class T>
Fault turn_few(const Stream& stream, const Turn& turn, const T* x, T* y) {
  const int64_t packs = turn.batch * turn.columns / (16 / static_cast<int64_t>(sizeof(T)));
  return launch(stream, {blocks_for(packs, kBlockThreads), kBlockThreads}, turn_few_rows<kRows, T>, turn, x, y);
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
      constexpr int kPack = 16 / static_cast<int>(sizeof(T));
      const T* const x = in[0].as<const T>() + offset;
      T* const y = out[0].as<T>();
      if (turn.columns % kPack == 0 && is_aligned<T, kPack>(x) && is_aligned<T, kPack>(y)) {
        if (turn.rows == 2) return turn_few<2>(stream, turn, x, y);
        if (turn.rows == 3) return turn_few<3>(stream, turn, x, y);
        if (turn.rows == 4) return turn_few<4>(stream, turn, x, y);
      }
      const Grid grid{dim3(blocks_for(ceil_div(turn.rows, kTile) * ceil_div(turn.columns, kTile), 1),
                           static_cast<unsigned>(std::min<int64_t>(turn.batch, 65535))),
                      dim3(kTile, kLines), kTile * (kTile + 1) * sizeof(T)};
      return launch(stream, grid, turn_tiles<T>, turn, x, y);
    });
  });
}

}  // namespace serin::kernels::cuda
