// nearest_resize.cc: recognises a Resize that repeats pixels. The nearest pixel of output i, enlarged s times, is i / s whenever it is
// found by
//
//   floor(i / s)                     asymmetric coordinates, rounded down: what torch exports
//   round((i + 1/2) / s - 1/2)       half-pixel coordinates: the distance to i / s is below one half, so that no rule for ties is asked

#include "runtime/engine/layout/nearest_resize.h"

#include <string>

namespace serin::engine {

namespace {

bool finds_whole_pixels(const kernels::Attributes& attributes) {
  if (attributes.text("mode", "nearest") != "nearest" || attributes.has("axes")) return false;
  const std::string coordinates = attributes.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = attributes.text("nearest_mode", "round_prefer_floor");
  if (coordinates == "asymmetric") return rounding == "floor";
  return coordinates == "half_pixel" && (rounding == "round_prefer_floor" || rounding == "round_prefer_ceil");
}

/// Whether the operand `scales`, where there is one, says exactly [1, 1, rows, columns]: the sizes alone may have been rounded.
bool says_exactly(const Program& program, const Step& step, const Repeats& repeats) {
  constexpr size_t kScales = 2;
  if (step.inputs.size() <= kScales || step.inputs[kScales] == kNoTensor) return true;
  const Tensor& scales = program.tensor(step.inputs[kScales]);
  if (scales.shape.elements() == 0) return true;
  if (!scales.constant || scales.constant->bytes() == 0 || scales.dtype != DType::kFloat32 || !(scales.shape == Shape{4})) return false;
  const auto values = scales.constant->span<float>();
  return values[0] == 1.f && values[1] == 1.f && values[2] == static_cast<float>(repeats.rows) &&
         values[3] == static_cast<float>(repeats.columns);
}

}  // namespace

std::optional<Repeats> repeats_of(const Program& program, const Step& step) {
  const auto* generic = std::get_if<kernels::Generic>(&step.kernel);
  if (!generic || generic->name != "Resize" || !finds_whole_pixels(generic->attributes)) return std::nullopt;
  const Shape& x = program.tensor(step.inputs[0]).shape;
  const Shape& y = program.tensor(step.outputs[0]).shape;
  if (x.rank() != 4 || y.rank() != 4 || x[0] != y[0] || x[1] != y[1] || x.elements() == 0) return std::nullopt;
  if (y[2] % x[2] != 0 || y[3] % x[3] != 0) return std::nullopt;
  const Repeats repeats{y[2] / x[2], y[3] / x[3]};
  if (repeats.rows < 1 || repeats.columns < 1 || !says_exactly(program, step, repeats)) return std::nullopt;
  return repeats;
}

}  // namespace serin::engine
