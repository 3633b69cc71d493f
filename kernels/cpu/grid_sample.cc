// grid_sample.cc: GridSample in f32. A point reads the same positions in every channel. So the elements and weights of a tile of points are
// found once (kernels/grid_sample.h), and every channel of the image is then gathered with them.

#include <algorithm>
#include <array>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/grid_sample.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPoints = 256;  // of a tile, whole vectors: with four taps 8 KiB of indices and weights

/// What the points of a tile see: tap k of point i at [k * kPoints + i]. A tap of no weight is not looked at.
struct Tile {
  int32_t* index;
  float* weight;
};

class GridSampleKernel final : public Kernel {
 public:
  GridSampleKernel(const ImageLoops& loops, const GridRule& rule, size_t axes, int threads)
      : loops_(loops), rule_(rule), threads_(threads) {
    for (size_t axis = 0; axis < axes; ++axis) taps_ *= rule.most_taps();
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_) * tile_bytes(); }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Shape& x = in[0].shape;  // [n, c, spatial...]
    const int64_t plane = product(x, 2, x.rank()), points = product(out[0].shape, 2, x.rank()), tiles = (points + kPoints - 1) / kPoints;
    parallel_for(stream, x[0] * tiles, [&](int64_t task, int worker) {
      const int64_t image = task / tiles, first = task % tiles * kPoints, count = std::min(kPoints, points - first);
      std::byte* const scratch = stream.scratch + static_cast<size_t>(worker) * tile_bytes();
      const Tile tile{reinterpret_cast<int32_t*>(scratch), reinterpret_cast<float*>(scratch + tile_bytes() / 2)};
      find(x, in[1].as<const float>() + (image * points + first) * static_cast<int64_t>(x.rank() - 2), count, tile);
      for (int64_t c = image * x[1]; c < (image + 1) * x[1]; ++c)
        loops_.gather(in[0].as<const float>() + c * plane, tile.index, tile.weight, kPoints, taps_, out[0].as<float>() + c * points + first,
                      count);
    });
    return kOk;
  }

 private:
  size_t tile_bytes() const { return static_cast<size_t>(kPoints * taps_) * (sizeof(int32_t) + sizeof(float)); }

  void find(const Shape& x, const float* grid, int64_t count, const Tile& tile) const {
    const size_t axes = x.rank() - 2;
    std::fill_n(tile.index, kPoints * taps_, 0);
    std::fill_n(tile.weight, kPoints * taps_, 0.f);
    const GridAxis outer(rule_, axes == 3 ? x[2] : 1), rows(rule_, x[axes == 3 ? 3 : 2]), columns(rule_, x.back());
    const GridTaps one{.count = 1, .taps = {{{0, 1.0}}}};
    for (int64_t i = 0; i < count; ++i, grid += axes) {  // the last coordinate of a point belongs to the first axis
      const GridTaps along_columns = columns.at(static_cast<double>(grid[0])), along_rows = rows.at(static_cast<double>(grid[1]));
      int64_t k = 0;
      for (const GridTap& plane : axes == 3 ? outer.at(static_cast<double>(grid[2])) : one) {
        for (const GridTap& row : along_rows) {
          for (const GridTap& column : along_columns) {
            const int64_t at = k++ * kPoints + i;
            tile.index[at] = static_cast<int32_t>((plane.index * x[axes] + row.index) * x.back() + column.index);
            tile.weight[at] = static_cast<float>(plane.weight * row.weight * column.weight);
          }
        }
      }
    }
  }

  const ImageLoops& loops_;
  const GridRule rule_;
  const int threads_;
  int64_t taps_ = 1;
};

}  // namespace

Prepared grid_sample(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "GridSample") return refuse(why, "not a GridSample");
  if (!is_f32(desc, why)) return nullptr;
  const auto rule = grid_rule(op.attributes, why);
  if (!rule) return nullptr;
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 4 || x.rank() > 5 || desc.inputs[1].shape.rank() != x.rank()) return refuse(why, "only two or three spatial axes");
  if (desc.inputs[1].shape.back() != static_cast<int64_t>(x.rank() - 2)) return refuse(why, "a point needs a coordinate for each axis");
  const int64_t plane = product(x, 2, x.rank());
  if (is_bounded(desc) || plane == 0 || plane > INT32_MAX) return refuse(why, "only planes of known size");
  return std::make_unique<GridSampleKernel>(*simd.image, *rule, x.rank() - 2, std::max(1, context.threads));
}

}  // namespace serin::kernels::cpu
