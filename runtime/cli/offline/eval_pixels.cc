#include "runtime/cli/offline/eval_pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "runtime/datasets/convert.h"
#include "runtime/steps/pipeline/numbers.h"

namespace serin::cli {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 24;  // an EvalAnswer has floats, which count exactly up to here
constexpr int64_t kMostClasses = 65'536;
constexpr float kHalf = 0.5F;

struct PixelMap {
  int64_t height = 0, width = 0;
  std::vector<int64_t> classes;
};

/// Axes of one element in front do not count: [1, H, W] is [H, W].
Shape without_ones(const Shape& shape, size_t rank) {
  std::span<const int64_t> dims = shape.dims();
  while (dims.size() > rank && dims.front() == 1) dims = dims.subspan(1);
  return Shape(dims);
}

Result<PixelMap> read_label(const datasets::Cell& cell) {
  if (cell.kind != datasets::Cell::Kind::kNumbers)
    return invalid(fmt::format("{}, a tensor with the class of each pixel is needed", datasets::describe(cell)));
  const Shape shape = without_ones(cell.numbers.shape, 2);
  if (shape.rank() != 2) return invalid(fmt::format("{}, a tensor [height, width] is needed", datasets::describe(cell)));
  if (shape.elements() < 1 || shape.elements() > kMostPixels)
    return invalid(fmt::format("{} has {} pixels, 1 to {} are needed", datasets::describe(cell), shape.elements(), kMostPixels));
  PixelMap map{shape[0], shape[1], {}};
  std::vector<std::byte> bytes;
  SERIN_CHECK(datasets::append_elements({&cell, 1}, DType::kInt64, cell.numbers.shape, bytes));
  map.classes.resize(bytes.size() / sizeof(int64_t));
  std::memcpy(map.classes.data(), bytes.data(), bytes.size());
  for (const int64_t of : map.classes)
    if (of >= kMostClasses) return invalid(fmt::format("class {} is over {}", of, kMostClasses - 1));
  return map;
}

/// How scores lie: the elements from one class of a pixel to the next one, and from a pixel to the next.
struct Layout {
  int64_t classes = 1, of_class = 0, of_pixel = 1;
};

std::optional<Layout> layout_of(const Shape& shape, const PixelMap& label) {
  const int64_t pixels = label.height * label.width;
  if (const Shape flat = without_ones(shape, 2); flat.rank() == 2)
    return flat[0] == label.height && flat[1] == label.width ? std::optional(Layout{}) : std::nullopt;
  const Shape scores = without_ones(shape, 3);
  if (scores.rank() != 3) return std::nullopt;
  if (scores[1] == label.height && scores[2] == label.width) return Layout{scores[0], pixels, 1};
  if (scores[0] == label.height && scores[1] == label.width) return Layout{scores[2], 1, scores[2]};
  return std::nullopt;
}

int64_t class_of(std::span<const float> numbers, const Layout& layout, int64_t pixel, bool whole) {
  const auto at = [&](int64_t of) { return numbers[static_cast<size_t>(pixel * layout.of_pixel + of * layout.of_class)]; };
  if (layout.classes == 1) return whole ? static_cast<int64_t>(at(0)) : at(0) >= kHalf ? 1 : 0;
  int64_t best = 0;
  for (int64_t of = 1; of < layout.classes; ++of)
    if (at(of) > at(best)) best = of;
  return best;
}

}  // namespace

Status count_pixels(const datasets::Cell& label, const TensorView& output, EvalRecord& record, EvalAnswer& answer) {
  SERIN_TRY(const PixelMap map, read_label(label));
  const auto layout = layout_of(output.shape, map);
  if (!layout || layout->classes > kMostClasses)
    return invalid(fmt::format("the label has {}x{} pixels, the answer is of shape {}", map.height, map.width, output.shape.str()));
  SERIN_TRY(const std::vector<float> numbers, steps::floats_of(output));
  if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) return invalid("the model's answer is not finite");
  const bool whole = steps::is_whole_number(output.dtype);
  std::vector<int64_t> predicted(map.classes.size());
  int64_t most = layout->classes - 1;
  for (size_t pixel = 0; pixel < predicted.size(); ++pixel) {
    predicted[pixel] = class_of(numbers, *layout, static_cast<int64_t>(pixel), whole);
    if (predicted[pixel] < 0 || predicted[pixel] >= kMostClasses)
      return invalid(fmt::format("the answer has class {}, from 0 to {} are possible", predicted[pixel], kMostClasses - 1));
    most = std::max(most, predicted[pixel]);
    if (map.classes[pixel] != kIgnoredPixel) most = std::max(most, map.classes[pixel]);
  }
  const size_t classes = static_cast<size_t>(most) + 1;
  record.truth_numbers.assign(classes, 0);
  answer.numbers.assign(2 * classes, 0);
  for (size_t pixel = 0; pixel < predicted.size(); ++pixel) {
    const int64_t truth = map.classes[pixel];
    if (truth < 0 || truth == kIgnoredPixel) continue;
    ++record.truth_numbers[static_cast<size_t>(truth)];
    ++answer.numbers[static_cast<size_t>(predicted[pixel])];
    if (truth == predicted[pixel]) ++answer.numbers[classes + static_cast<size_t>(truth)];
  }
  return {};
}

}  // namespace serin::cli
