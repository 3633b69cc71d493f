// Shape rules of operators that take parts of images or rearrange them: RoiAlign, MaxRoiPool, CenterCropPad, DepthToSpace, SpaceToDepth. And of ImageDecoder.

#include <algorithm>

#include "runtime/graph/ops/image.h"

namespace serin::graph {
namespace {

constexpr int64_t kMostBins = 1 << 16;  // along an axis

Status check_bins(const Context& c, std::string_view key, int64_t bins) {
  if (bins >= 1 && bins <= kMostBins) return {};
  return c.fail("{} is {}, it must be 1 to {}", key, bins, kMostBins);
}

/// x [n, c, h, w] and boxes [count, columns] -> [count, c, height, width].
Status set_regions(Context& c, int64_t columns, int64_t height, int64_t width) {
  SERIN_CHECK(c.same_dtype(0, 1));
  const Dims* x = c.dims(0);
  const Dims* boxes = c.dims(1);
  if (x && x->size() != 4) return c.fail("input has shape {}, it must be [n, c, h, w]", print(*x));
  if (boxes && (boxes->size() != 2 || !unify((*boxes)[1], columns)))
    return c.fail("boxes have shape {}, they must be [count,{}]", print(*boxes), columns);
  const Dim count = boxes ? (*boxes)[0] : c.unknown_dim(), channels = x ? (*x)[1] : c.unknown_dim();
  return c.set(0, c.dtype(0), Dims{count, channels, height, width});
}

Result<int64_t> block_size(const Context& c) {
  const int64_t block = c.node().integer("blocksize", 0);
  if (block < 1 || block > kMostBins) return c.fail("blocksize is {}, it must be 1 to {}", block, kMostBins);
  if (const Dims* x = c.dims(0); x && x->size() != 4) return c.fail("input has shape {}, it must be [n, c, h, w]", print(*x));
  return block;
}

}  // namespace

Status infer_roi_align(Context& c) {
  const int64_t height = c.node().integer("output_height", 1), width = c.node().integer("output_width", 1);
  const int64_t ratio = c.node().integer("sampling_ratio", 0);
  SERIN_CHECK(check_bins(c, "output_height", height));
  SERIN_CHECK(check_bins(c, "output_width", width));
  if (ratio < 0 || ratio > 1024) return c.fail("sampling_ratio is {}, it must be 0 to 1024", ratio);
  SERIN_CHECK(c.index_dtype(2));
  const Dims* boxes = c.dims(1);
  const Dims* images = c.dims(2);
  if (images && (images->size() != 1 || (boxes && boxes->size() == 2 && !unify((*images)[0], (*boxes)[0]))))
    return c.fail("batch indices have shape {}, one for each box is needed", print(*images));
  return set_regions(c, 4, height, width);
}

Status infer_max_roi_pool(Context& c) {
  const std::vector<int64_t> shape = c.node().integers("pooled_shape");
  if (shape.size() != 2) return c.fail("pooled_shape has {} elements, it must have 2", shape.size());
  SERIN_CHECK(check_bins(c, "pooled_shape", std::min(shape[0], shape[1])));
  SERIN_CHECK(check_bins(c, "pooled_shape", std::max(shape[0], shape[1])));
  return set_regions(c, 5, shape[0], shape[1]);
}

/// The bytes of a file -> [height, width, channels].
Status infer_image_decoder(Context& c) {
  if (c.dtype(0) != DType::kUInt8 && c.dtype(0) != DType::kUndefined) return c.fail("reads {}, it must be u8", print(c.type(0)));
  if (const Dims* file = c.dims(0); file && file->size() != 1) return c.fail("the file has shape {}, it must be [bytes]", print(*file));
  const std::string format = c.node().text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    return c.fail("pixel_format is '{}', it must be RGB, BGR or Grayscale", format);
  return c.set(0, DType::kUInt8, Dims{c.unknown_dim(), c.unknown_dim(), format == "Grayscale" ? 1 : 3});
}

Status infer_center_crop_pad(Context& c) {
  SERIN_CHECK(c.index_dtype(1));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  SERIN_TRY(const std::vector<size_t> axes, listed_axes(c, x->size()));
  const Dims* shape = c.elements(1);
  if (shape && shape->size() != axes.size()) return c.fail("{} sizes are given for {} axes", shape->size(), axes.size());
  Dims result = *x;
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = shape ? (*shape)[i] : c.unknown_dim();
  return c.set(0, c.dtype(0), std::move(result));
}

Status infer_depth_to_space(Context& c) {
  SERIN_TRY(const int64_t block, block_size(c));
  const std::string mode = c.node().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("mode '{}' is unknown", mode);
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  const auto channels = (*x)[1].value();
  if (channels && *channels % (block * block) != 0) return c.fail("{} channels are not a multiple of {} squared", *channels, block);
  return c.set(0, c.dtype(0), Dims{(*x)[0], floor_div((*x)[1], block * block), (*x)[2] * Dim(block), (*x)[3] * Dim(block)});
}

Status infer_space_to_depth(Context& c) {
  SERIN_TRY(const int64_t block, block_size(c));
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  for (size_t axis = 2; axis < 4; ++axis) {
    const auto size = (*x)[axis].value();
    if (size && *size % block != 0) return c.fail("axis {} of {} is not a multiple of the block, {}", axis, print(*x), block);
  }
  return c.set(0, c.dtype(0), Dims{(*x)[0], (*x)[1] * Dim(block * block), floor_div((*x)[2], block), floor_div((*x)[3], block)});
}

}  // namespace serin::graph
