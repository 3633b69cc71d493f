// resize.cc: Resize in f32 of the last two axes of a tensor, seen as planes of rows.
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
#include "kernels/resample.h"

namespace serin::kernels::cpu {

namespace {

/// Taps as the loops want them: for columns tap by tap, for rows output by output.
struct PlaneTaps {
  ResampleTaps rows, columns;
  std::vector<int32_t> column_index;  // [count, width of y]
  std::vector<float> column_weight;
  std::vector<float> row_weight;  // [height of y, count]
  bool same_width = false;
  int64_t repeat = 0;  ///< nearest: each element of x is there so often, in order; 0: they are not
};

ResampleTaps identity(int64_t size) {
  ResampleTaps taps;
  taps.count = 1;
  for (int64_t i = 0; i < size; ++i) taps.index.push_back(i), taps.weight.push_back(1);
  return taps;
}

PlaneTaps plane_taps(const ResampleRule& rule, const ResampleAxis& height, const ResampleAxis& width) {
  PlaneTaps taps;
  taps.same_width = width.is_identity(rule);
  taps.rows = height.is_identity(rule) ? identity(height.output) : resample_taps(rule, height);
  taps.columns = taps.same_width ? identity(width.output) : resample_taps(rule, width);
  const auto n = static_cast<size_t>(width.output);
  for (size_t k = 0; k < static_cast<size_t>(taps.columns.count); ++k) {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = i * static_cast<size_t>(taps.columns.count) + k;
      taps.column_index.push_back(static_cast<int32_t>(taps.columns.index[at]));
      if (rule.mode != ResampleMode::kNearest) taps.column_weight.push_back(static_cast<float>(taps.columns.weight[at]));
    }
  }
  for (const double weight : taps.rows.weight) taps.row_weight.push_back(static_cast<float>(weight));
  if (width.input > 0 && width.output % width.input == 0) taps.repeat = width.output / width.input;
  for (size_t i = 0; i < n && taps.repeat > 0; ++i) {
    if (taps.column_index[i] != static_cast<int64_t>(i) / taps.repeat) taps.repeat = 0;
  }
  return taps;
}

void spread_nearest(const ImageLoops& loops, const PlaneTaps& taps, const float* x, float* y, int64_t n) {
  if (taps.repeat > 0) return loops.repeat(x, taps.repeat, y, n / taps.repeat);
  for (int64_t i = 0; i < n; ++i) y[i] = x[taps.column_index[static_cast<size_t>(i)]];
}

struct Planes2D {
  int64_t h, w, oh, ow;
};

void nearest_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const float* x, float* y) {
  int64_t last = -1;
  for (int64_t row = 0; row < size.oh; ++row, y += size.ow) {
    const int64_t source = taps.rows.index[static_cast<size_t>(row)];
    if (source == last)
      std::copy_n(y - size.ow, size.ow, y);
    else if (taps.same_width)
      std::copy_n(x + source * size.w, size.ow, y);
    else
      spread_nearest(loops, taps, x + source * size.w, y, size.ow);
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
    memory_.resize(static_cast<size_t>(slots * size.ow));
  }
  void start(const float* x) {
    x_ = x;
    std::fill(held_.begin(), held_.end(), -1);
  }
  const float* row(int64_t index) {
    const float* source = x_ + index * size_.w;
    if (taps_.same_width) return source;
    const auto slot = static_cast<size_t>(index % slots_);
    float* resized = memory_.data() + slot * static_cast<size_t>(size_.ow);
    if (held_[slot] != index) {
      loops_.resample_row(source, taps_.column_index.data(), taps_.column_weight.data(), taps_.columns.count, resized, size_.ow);
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

void enlarge_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, RowRing& ring, float* y) {
  std::vector<const float*> rows(static_cast<size_t>(taps.rows.count));
  for (int64_t row = 0; row < size.oh; ++row, y += size.ow) {
    const auto first = static_cast<size_t>(row * taps.rows.count);
    for (size_t k = 0; k < rows.size(); ++k) rows[k] = ring.row(taps.rows.index[first + k]);
    loops.mix_rows(rows.data(), taps.row_weight.data() + first, taps.rows.count, y, size.ow);
  }
}

/// Where there are fewer rows than before, none is seen often: they are mixed first, so that columns are resized once for each row of y.
void shrink_plane(const ImageLoops& loops, const PlaneTaps& taps, const Planes2D& size, const float* x, float* y) {
  std::vector<const float*> rows(static_cast<size_t>(taps.rows.count));
  std::vector<float> mixed(static_cast<size_t>(size.w));
  for (int64_t row = 0; row < size.oh; ++row, y += size.ow) {
    const auto first = static_cast<size_t>(row * taps.rows.count);
    for (size_t k = 0; k < rows.size(); ++k) rows[k] = x + taps.rows.index[first + k] * size.w;
    loops.mix_rows(rows.data(), taps.row_weight.data() + first, taps.rows.count, taps.same_width ? y : mixed.data(), size.w);
    if (taps.same_width) continue;
    loops.resample_row(mixed.data(), taps.column_index.data(), taps.column_weight.data(), taps.columns.count, y, size.ow);
  }
}

class ResizeKernel final : public Kernel {
 public:
  ResizeKernel(const Simd& simd, const ResampleRule& rule, const Attributes& attributes)
      : loops_(*simd.image), rule_(rule), attributes_(attributes) {}

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    if (out[0].elements() == 0) return kOk;
    std::string why;
    const auto axes = resample_axes(attributes_, in[0].shape, out[0].shape, operand(in, 1), operand(in, 2), operand(in, 3), why);
    if (!axes) return why;
    const size_t rank = axes->size();
    for (size_t axis = 0; axis + 2 < rank; ++axis) {
      if (!(*axes)[axis].is_identity(rule_)) return "axis " + std::to_string(axis) + " is resized, which this kernel does not do";
    }
    const ResampleAxis &height = (*axes)[rank - 2], &width = (*axes)[rank - 1];
    const PlaneTaps taps = plane_taps(rule_, height, width);
    const Planes2D size{height.input, width.input, height.output, width.output};
    const int64_t planes = product(in[0].shape, 0, rank - 2);
    const int64_t tasks = std::min<int64_t>(planes, stream.workers ? 16 : 1);
    parallel_for(stream, tasks, [&](int64_t task, int) {
      // Around an edge, or where outputs shrink, taps of one output span more rows than there are taps: as many slots as they span.
      RowRing ring(loops_, taps, size, nullptr, widest_span(taps.rows));
      for (int64_t p = planes * task / tasks; p < planes * (task + 1) / tasks; ++p) {
        const float* x = in[0].as<const float>() + p * size.h * size.w;
        float* y = out[0].as<float>() + p * size.oh * size.ow;
        if (rule_.mode == ResampleMode::kNearest) {
          nearest_plane(loops_, taps, size, x, y);
        } else if (size.oh < size.h) {
          shrink_plane(loops_, taps, size, x, y);
        } else {
          ring.start(x);
          enlarge_plane(loops_, taps, size, ring, y);
        }
      }
    });
    return kOk;
  }

 private:
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
};

}  // namespace

Prepared resize(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "Resize") return refuse(why, "not a Resize");
  const bool f32 = desc.inputs[0].dtype == DType::kFloat32;
  if (!f32) return refuse(why, "only f32");
  const Shape& x = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  if (x.rank() < 2 || desc.inputs[0].bounded || desc.outputs[0].bounded)
    return refuse(why, "only tensors of rank 2 or more with known sizes");
  for (size_t axis = 0; axis + 2 < x.rank(); ++axis) {
    if (x[axis] != y[axis]) return refuse(why, "only the last two axes are resized");
  }
  if (x[x.rank() - 1] > INT32_MAX) return refuse(why, "rows too long");
  const auto rule = resample_rule(op.attributes, why);
  if (!rule) return nullptr;
  if (rule->coordinates == ResampleCoordinates::kTfCropAndResize) return refuse(why, "no tf_crop_and_resize");
  return std::make_unique<ResizeKernel>(simd, *rule, op.attributes);
}

}  // namespace serin::kernels::cpu
