// resize.cc: Resize in f32 of two axes of a tensor that lie side by side, seen as planes of rows of pixels. A pixel has as many elements as the axes after
// them: one in images whose channels come first, all channels in those whose channels come last.
//
// Each row of x that is looked at is resized along its columns once, into a ring of rows; a row of y mixes those it sees (two for linear, four for cubic).
// Upsampling by two so touches each input pixel four times less often than a loop over the output's pixels does. Nearest copies: a row of y that sees the
// same row of x as the one before it is a copy of that.

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"
#include "kernels/ref/ref.h"
#include "kernels/resample.h"

namespace serin::kernels::cpu {

namespace {

/// Pixels of so many elements are mixed one by one. Rows of smaller ones are gathered element by element, which takes whole vectors.
constexpr int64_t kWholePixel = 8;

/// Taps as the loops want them: for columns tap by tap, or output by output for whole pixels; for rows output by output.
struct PlaneTaps {
  ResampleTaps rows, columns;
  std::vector<int32_t> column_index;  // [count, width of y, elements of a pixel]; empty for whole pixels
  std::vector<float> column_weight;   // the same, or [width of y, count] for whole pixels
  std::vector<float> row_weight;      // [height of y, count]
  bool same_width = false;
  int64_t repeat = 0;  ///< nearest: each element of x is there so often, in order; 0: they are not
};

ResampleTaps identity(int64_t size) {
  ResampleTaps taps;
  taps.count = 1;
  for (int64_t i = 0; i < size; ++i) taps.index.push_back(i), taps.weight.push_back(1);
  return taps;
}

/// `pixel`: its elements.
PlaneTaps plane_taps(const ResampleRule& rule, const ResampleAxis& height, const ResampleAxis& width, int64_t pixel) {
  PlaneTaps taps;
  taps.same_width = width.is_identity(rule);
  taps.rows = height.is_identity(rule) ? identity(height.output) : resample_taps(rule, height);
  taps.columns = taps.same_width ? identity(width.output) : resample_taps(rule, width);
  for (const double weight : taps.rows.weight) taps.row_weight.push_back(static_cast<float>(weight));
  if (pixel >= kWholePixel || (pixel > 1 && rule.mode == ResampleMode::kNearest)) {
    for (const double weight : taps.columns.weight) taps.column_weight.push_back(static_cast<float>(weight));
    return taps;
  }
  const auto n = static_cast<size_t>(width.output);
  for (size_t k = 0; k < static_cast<size_t>(taps.columns.count); ++k) {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = i * static_cast<size_t>(taps.columns.count) + k;
      for (int64_t part = 0; part < pixel; ++part) {
        taps.column_index.push_back(static_cast<int32_t>(taps.columns.index[at] * pixel + part));
        if (rule.mode != ResampleMode::kNearest) taps.column_weight.push_back(static_cast<float>(taps.columns.weight[at]));
      }
    }
  }
  if (pixel == 1 && width.input > 0 && width.output % width.input == 0) taps.repeat = width.output / width.input;
  for (size_t i = 0; i < n && taps.repeat > 0; ++i) {
    if (taps.column_index[i] != static_cast<int64_t>(i) / taps.repeat) taps.repeat = 0;
  }
  return taps;
}

/// Of x and of y; rows are counted in pixels.
struct Planes2D {
  int64_t h, w, oh, ow, pixel;
  int64_t x_row() const { return w * pixel; }
  int64_t y_row() const { return ow * pixel; }
};

struct RowRange {
  int64_t begin, end;
};

void spread_nearest(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const float* x, float* y) {
  if (taps.repeat > 0) return loops.repeat(x, taps.repeat, y, size.ow / taps.repeat);
  for (int64_t i = 0; i < size.ow; ++i) {
    const int64_t from = taps.columns.index[static_cast<size_t>(i)];
    if (size.pixel == 1)
      y[i] = x[from];
    else
      std::copy_n(x + from * size.pixel, size.pixel, y + i * size.pixel);
  }
}

void mix_columns(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const float* x, float* y) {
  const int64_t count = taps.columns.count;
  if (size.pixel < kWholePixel) return loops.resample_row(x, taps.column_index.data(), taps.column_weight.data(), count, y, size.y_row());
  std::vector<const float*> pixels(static_cast<size_t>(count));
  const int64_t* index = taps.columns.index.data();
  const float* weight = taps.column_weight.data();
  for (int64_t i = 0; i < size.ow; ++i, index += count, weight += count, y += size.pixel) {
    for (size_t k = 0; k < pixels.size(); ++k) pixels[k] = x + index[k] * size.pixel;
    loops.mix_rows(pixels.data(), weight, count, y, size.pixel);
  }
}

void nearest_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const RowRange& range, const float* x, float* y) {
  int64_t last = -1;
  for (int64_t row = range.begin; row < range.end; ++row, y += size.y_row()) {
    const int64_t source = taps.rows.index[static_cast<size_t>(row)];
    if (source == last)
      std::copy_n(y - size.y_row(), size.y_row(), y);
    else if (taps.same_width)
      std::copy_n(x + source * size.x_row(), size.y_row(), y);
    else
      spread_nearest(loops, taps, size, x + source * size.x_row(), y);
    last = source;
  }
}

/// Rows of x resized along their columns. Row r lives in slot r % slots: those that one row of y sees are neighbours.
class RowRing {
 public:
  RowRing(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const float* x, int64_t slots)
      : loops_(loops), taps_(taps), size_(size), x_(x), slots_(slots) {
    if (taps.same_width) return;
    held_.assign(static_cast<size_t>(slots), -1);
    memory_.resize(static_cast<size_t>(slots * size.y_row()));
  }
  void start(const float* x) {
    x_ = x;
    std::fill(held_.begin(), held_.end(), -1);
  }
  const float* row(int64_t index) {
    const float* source = x_ + index * size_.x_row();
    if (taps_.same_width) return source;
    const auto slot = static_cast<size_t>(index % slots_);
    float* resized = memory_.data() + slot * static_cast<size_t>(size_.y_row());
    if (held_[slot] != index) {
      mix_columns(loops_, taps_, size_, source, resized);
      held_[slot] = index;
    }
    return resized;
  }

 private:
  const ImageLoops& loops_;
  const PlaneTaps& taps_;
  const Planes2D& size_;
  const float* x_;
  int64_t slots_;
  std::vector<int64_t> held_;
  std::vector<float> memory_;
};

void enlarge_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const RowRange& range, RowRing& ring, float* y) {
  std::vector<const float*> rows(static_cast<size_t>(taps.rows.count));
  for (int64_t row = range.begin; row < range.end; ++row, y += size.y_row()) {
    const auto first = static_cast<size_t>(row * taps.rows.count);
    for (size_t k = 0; k < rows.size(); ++k) rows[k] = ring.row(taps.rows.index[first + k]);
    loops.mix_rows(rows.data(), taps.row_weight.data() + first, taps.rows.count, y, size.y_row());
  }
}

/// Where there are fewer rows than before, none is seen often: they are mixed first, so that columns are resized once for each row of y.
void shrink_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const RowRange& range, const float* x, float* y) {
  std::vector<const float*> rows(static_cast<size_t>(taps.rows.count));
  std::vector<float> mixed(static_cast<size_t>(size.x_row()));
  for (int64_t row = range.begin; row < range.end; ++row, y += size.y_row()) {
    const auto first = static_cast<size_t>(row * taps.rows.count);
    for (size_t k = 0; k < rows.size(); ++k) rows[k] = x + taps.rows.index[first + k] * size.x_row();
    loops.mix_rows(rows.data(), taps.row_weight.data() + first, taps.rows.count, taps.same_width ? y : mixed.data(), size.x_row());
    if (!taps.same_width) mix_columns(loops, taps, size, mixed.data(), y);
  }
}

class ResizeKernel final : public Kernel {
 public:
  /// `height` is the axis of the rows; the next one is that of the columns. `rest` runs what scales reveal to be something else.
  ResizeKernel(const Simd& simd, const ResampleRule& rule, const Attributes& attributes, size_t height, Prepared rest)
      : loops_(*simd.image), rule_(rule), attributes_(attributes), height_(height), rest_(std::move(rest)) {}

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    if (out[0].elements() == 0) return kOk;
    std::string why;
    const auto axes = resample_axes(attributes_, in[0].shape, out[0].shape, operand(in, 1), operand(in, 2), operand(in, 3), why);
    if (!axes) return why;
    const size_t rank = axes->size();
    for (size_t axis = 0; axis < rank; ++axis) {
      if (axis != height_ && axis != height_ + 1 && !(*axes)[axis].is_identity(rule_)) return rest_->run(stream, in, out);
    }
    const ResampleAxis &height = (*axes)[height_], &width = (*axes)[height_ + 1];
    const Planes2D size{height.input, width.input, height.output, width.output, product(in[0].shape, height_ + 2, rank)};
    const PlaneTaps taps = plane_taps(rule_, height, width, size.pixel);
    const int64_t planes = product(in[0].shape, 0, height_);
    // Few planes are cut into strips of rows, each of which resizes the columns of the rows that it sees.
    const int64_t tasks = stream.workers ? std::min<int64_t>(planes, kTasks) : 1;
    const int64_t strips = stream.workers ? std::clamp<int64_t>(size.oh / 16, 1, kTasks / tasks) : 1;
    parallel_for(stream, tasks * strips, [&](int64_t at, int) {
      const int64_t task = at / strips, strip = at % strips;
      const RowRange range{size.oh * strip / strips, size.oh * (strip + 1) / strips};
      // Around an edge, or where outputs shrink, taps of one output span more rows than there are taps: as many slots as they span.
      RowRing ring(loops_, taps, size, nullptr, widest_span(taps.rows));
      for (int64_t p = planes * task / tasks; p < planes * (task + 1) / tasks; ++p) {
        const float* x = in[0].as<const float>() + p * size.h * size.x_row();
        float* y = out[0].as<float>() + (p * size.oh + range.begin) * size.y_row();
        if (rule_.mode == ResampleMode::kNearest) {
          nearest_plane(loops_, taps, size, range, x, y);
        } else if (size.oh < size.h) {
          shrink_plane(loops_, taps, size, range, x, y);
        } else {
          ring.start(x);
          enlarge_plane(loops_, taps, size, range, ring, y);
        }
      }
    });
    return kOk;
  }

 private:
  static constexpr int64_t kTasks = 16;

  static int64_t widest_span(const ResampleTaps& rows) {
    int64_t span = 1;
    for (size_t i = 0; i < rows.index.size(); i += static_cast<size_t>(rows.count)) {
      const auto [low, high] = std::minmax_element(rows.index.begin() + static_cast<std::ptrdiff_t>(i),
                                                   rows.index.begin() + static_cast<std::ptrdiff_t>(i) + rows.count);
      span = std::max(span, *high - *low + 1);
    }
    return span;
  }

  const ImageLoops& loops_;
  const ResampleRule rule_;
  const Attributes attributes_;
  const size_t height_;
  const Prepared rest_;
};

}  // namespace

std::optional<size_t> resized_rows(const OpDesc& desc, std::string& why) {
  const auto refused = [&why](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const Shape& x = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  if (x.rank() < 2 || desc.inputs[0].bounded || desc.outputs[0].bounded) return refused("only tensors of rank 2 or more with known sizes");
  size_t height = 0;
  while (height + 2 < x.rank() && x[height] == y[height]) ++height;
  for (size_t axis = height + 2; axis < x.rank(); ++axis) {
    if (x[axis] != y[axis]) return refused("only axes side by side are resized, at most two");
  }
  if (product(x, height + 1, x.rank()) > INT32_MAX) return refused("rows too long");
  return height;
}

Prepared resize(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "Resize") return refuse(why, "not a Resize");
  if (desc.inputs[0].dtype != DType::kFloat32) return refuse(why, "only f32");
  const auto height = resized_rows(desc, why);
  if (!height) return nullptr;
  const auto rule = resample_rule(op.attributes, why);
  if (!rule) return nullptr;
  if (rule->coordinates == ResampleCoordinates::kTfCropAndResize) return refuse(why, "no tf_crop_and_resize");
  Prepared rest = ref::generic(desc, context, why);
  if (!rest) return nullptr;
  return std::make_unique<ResizeKernel>(simd, *rule, op.attributes, *height, std::move(rest));
}

}  // namespace serin::kernels::cpu
