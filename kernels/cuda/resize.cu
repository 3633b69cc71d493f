// resize.cu: Resize of any mode along up to three axes: a thread for each result. kernels/resample.h says which elements an output sees along an axis and with
// which weights; these taps are found at load and lie in the device's memory. The result is the sum over their products: for the few taps of enlarging
// that is cheaper than an image between two passes.

#include "kernels/resample.h"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/moved.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kAxes = 3;

struct Tap {
  int32_t index;  ///< -1: the output lies outside and gets the extrapolation value
  float weight;
};

/// The axes that change, outermost first; fewer than kAxes have leading ones without taps. `strides`: of x along them.
struct Resampled {
  int64_t elements = 0;
  Space<1> fixed;  ///< where an element lies by the axes that do not change
  Division inner[kAxes], size[kAxes];
  int64_t stride[kAxes] = {};
  int taps[kAxes] = {1, 1, 1};
  const Tap* table[kAxes] = {};
};

__device__ inline bool find(const Resampled& r, int64_t i, int64_t& offset, const Tap* (&taps)[kAxes]) {
  int64_t at[1];
  r.fixed.locate(i, at);
  offset = at[0];
  bool inside = true;
  for (int axis = 0; axis < kAxes; ++axis) {
    taps[axis] = nullptr;
    if (!r.table[axis]) continue;
    taps[axis] = r.table[axis] + r.size[axis].remainder(r.inner[axis].quotient(i)) * r.taps[axis];
    inside = inside && taps[axis]->index >= 0;
  }
  return inside;
}

/// One element each: nothing is computed, so that only its size counts.
template <class T>
__global__ void take_nearest(Resampled r, const T* x, T extrapolation, T* y) {
  for (int64_t i = first_element(); i < r.elements; i += element_step()) {
    int64_t offset;
    const Tap* taps[kAxes];
    const bool inside = find(r, i, offset, taps);
    for (int axis = 0; inside && axis < kAxes; ++axis) {
      if (taps[axis]) offset += taps[axis]->index * r.stride[axis];
    }
    y[i] = inside ? x[offset] : extrapolation;
  }
}

/// Floats are summed as they are computed, integers in double. A sum that misses a whole number by no more than rounding errors counts as that number.
template <class T>
__global__ void sum_taps(Resampled r, const T* x, float extrapolation, T* y) {
  using S = std::conditional_t<kIsFloatKind<T>, compute_t<T>, double>;
  for (int64_t i = first_element(); i < r.elements; i += element_step()) {
    int64_t offset;
    const Tap* taps[kAxes];
    if (!find(r, i, offset, taps)) {
      y[i] = cast<T>(extrapolation);
      continue;
    }
    S sum = 0;
    for (int a = 0; a < r.taps[0]; ++a) {
      const int64_t plane = offset + (taps[0] ? taps[0][a].index * r.stride[0] : 0);
      const S plane_weight = taps[0] ? static_cast<S>(taps[0][a].weight) : S(1);
      for (int b = 0; b < r.taps[1]; ++b) {
        const int64_t row = plane + (taps[1] ? taps[1][b].index * r.stride[1] : 0);
        const S row_weight = plane_weight * (taps[1] ? static_cast<S>(taps[1][b].weight) : S(1));
        for (int c = 0; c < r.taps[2]; ++c) {
          const int64_t at = row + (taps[2] ? taps[2][c].index * r.stride[2] : 0);
          sum += static_cast<S>(load(x[at])) * (row_weight * (taps[2] ? static_cast<S>(taps[2][c].weight) : S(1)));
        }
      }
    }
    if constexpr (kIsFloatKind<T>)
      y[i] = cast<T>(sum);
    else
      y[i] = cast<T>(sum + std::copysign(1e-6, sum));
  }
}

/// An operand as the host sees it; nothing where it is absent. `known`: false where it is computed.
std::optional<TensorView> operand_of(const OpDesc& desc, size_t i, bool& known) {
  if (i >= desc.inputs.size() || desc.inputs[i].dtype == DType::kUndefined || desc.inputs[i].shape.elements() == 0) return std::nullopt;
  const TensorDesc& input = desc.inputs[i];
  known = known && input.constant;
  return TensorView{input.dtype, input.shape, known ? const_cast<std::byte*>(input.constant.as<std::byte>()) : nullptr};
}

struct Tables {
  Resampled rule;                                       ///< without its tables
  std::vector<std::pair<int, size_t>> starts;           ///< of the axes that change, in `memory`
  std::shared_ptr<const PackedWeights::Buffer> memory;  ///< of the taps; lies somewhere from the first run on

  Resampled resampled() const {
    Resampled r = rule;
    for (const auto& [slot, start] : starts) r.table[slot] = reinterpret_cast<const Tap*>(memory->data) + start;
    return r;
  }
};

std::optional<Tables> tables_of(const OpDesc& desc, const ResampleRule& rule, PrepareContext& context, std::string& why) {
  bool known = true;
  const auto roi = operand_of(desc, 1, known), scales = operand_of(desc, 2, known), sizes = operand_of(desc, 3, known);
  if (!known) return why = "scales or sizes are computed", std::nullopt;
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  const auto pointer = [](const auto& view) { return view ? &*view : nullptr; };
  const auto axes = resample_axes(std::get<Generic>(desc.op).attributes, x, y, pointer(roi), pointer(scales), pointer(sizes), why);
  if (!axes) return std::nullopt;

  Tables tables;
  Resampled& r = tables.rule;
  r.elements = y.elements();
  Strides strides = row_major_strides(x);
  std::vector<Tap> taps;
  for (size_t axis = x.rank(); axis-- > 0;) {
    if ((*axes)[axis].is_identity(rule)) continue;
    const int slot = kAxes - 1 - static_cast<int>(tables.starts.size());
    if (slot < 0) return why = "more than three axes change", std::nullopt;
    if (x[axis] > INT32_MAX) return why = "an axis is too long", std::nullopt;
    const ResampleTaps along = resample_taps(rule, (*axes)[axis]);
    tables.starts.emplace_back(slot, taps.size());
    for (size_t i = 0; i < along.index.size(); ++i) {
      const bool outside = !along.outside.empty() && along.outside[i / static_cast<size_t>(along.count)];
      taps.push_back(
          {outside ? -1 : static_cast<int32_t>(along.index[i]), along.weight.empty() ? 1.f : static_cast<float>(along.weight[i])});
    }
    r.taps[slot] = static_cast<int>(along.count);
    r.stride[slot] = std::exchange(strides[axis], 0);
    r.inner[slot] = Division(product(y, axis + 1, y.rank()), r.elements);
    r.size[slot] = Division(y[axis], r.elements);
  }
  r.fixed = Space<1>(y, {strides});
  const size_t bytes = taps.size() * sizeof(Tap);
  if (bytes == 0) return tables;
  tables.memory = context.weights->get(0, "resize", bytes, [&](std::byte* to) { std::memcpy(to, taps.data(), bytes); });
  return tables;
}

}  // namespace

Prepared prepare_resize(const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto rule = resample_rule(std::get<Generic>(desc.op).attributes, why);
  if (!rule) return nullptr;
  const auto tables = tables_of(desc, *rule, context, why);
  if (!tables) return nullptr;
  const KernelTraits traits{.packed_inputs = 0b1110};
  const DType dtype = desc.outputs[0].dtype;
  if (rule->mode == ResampleMode::kNearest && rule->extrapolation == 0) {
    return for_sizes(dtype, why, [&]<class T>(Element<T>) -> Prepared {
      return make_kernel(
          [tables = *tables](Stream& stream, Inputs in, Outputs out) -> Fault {
            return launch(stream, {blocks_for(tables.rule.elements, kBlockThreads), kBlockThreads}, take_nearest<T>, tables.resampled(),
                          in[0].as<const T>(), T{}, out[0].as<T>());
          },
          traits);
    });
  }
  return ref::for_numbers(dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [tables = *tables, extrapolation = static_cast<float>(rule->extrapolation)](Stream& stream, Inputs in, Outputs out) -> Fault {
          return launch(stream, {blocks_for(tables.rule.elements, kBlockThreads), kBlockThreads}, sum_taps<T>, tables.resampled(),
                        in[0].as<const T>(), extrapolation, out[0].as<T>());
        },
        traits);
  });
}

}  // namespace serin::kernels::cuda
