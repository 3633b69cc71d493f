// made_up_tensors.h: generates inputs for models that run without given ones, for `bench` and to decide on a precision.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/engine.h"

namespace serin::samples {

/// Memory for the tensors of an interface.
class Tensors {
 public:
  explicit Tensors(std::span<const engine::TensorInfo> infos) {
    for (const engine::TensorInfo& info : infos) {
      TensorView view{info.dtype, info.shape, nullptr};
      memory_.emplace_back(view.bytes() + 1);
      view.data = memory_.back().data();
      views_.push_back(view);
    }
  }

  /// Fills floats with numbers in [-1, 1). The rest get 0 and 1: they are indices, lengths or masks and must be in range.
  void randomise(uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1.f, 1.f);
    for (const TensorView& view : views_) {
      const auto elements = static_cast<size_t>(view.elements());
      std::fill_n(view.as<std::byte>(), view.bytes(), std::byte{0});
      if (view.dtype == DType::kFloat32)
        std::generate_n(view.as<float>(), elements, [&] { return number(random); });
      else if (view.dtype == DType::kFloat64)
        std::generate_n(view.as<double>(), elements, [&] { return number(random); });
      else if (view.dtype == DType::kFloat16)
        std::generate_n(view.as<uint16_t>(), elements, [&] { return random() % 2 ? 0x3c00 : 0xbc00; });  // +1, -1
      else if (view.dtype == DType::kBFloat16)
        std::generate_n(view.as<uint16_t>(), elements, [&] { return random() % 2 ? 0x3f80 : 0xbf80; });
      else
        for (size_t i = 0; i < elements; ++i) view.as<std::byte>()[i * dtype_size(view.dtype)] = static_cast<std::byte>(random() % 2);
    }
  }

  std::span<TensorView> views() { return views_; }

 private:
  std::vector<AlignedBuffer> memory_;
  std::vector<TensorView> views_;
};

/// Makes values for a model's inputs; a dimension that `bindings` leave open is 1.
inline Result<std::vector<engine::Value>> made_up_values(const engine::Model& model, const graph::Bindings& bindings, uint32_t seed = 1) {
  std::vector<engine::TensorInfo> infos(model.inputs().begin(), model.inputs().end());
  for (engine::TensorInfo& info : infos) {
    if (info.kind != graph::ValueKind::kTensor || !info.ranked || dtype_size(info.dtype) == 0)
      return Error{Code::kUnsupported, "input '" + info.name + "' is not a tensor of numbers of known rank: nothing can be made up for it"};
    for (size_t axis = 0; axis < info.dims.size(); ++axis) info.shape[axis] = info.dims[axis].bind(bindings).value().value_or(1);
  }
  Tensors tensors(infos);
  tensors.randomise(seed);
  std::vector<engine::Value> values;
  for (const TensorView& view : tensors.views())
    values.push_back(engine::Value::of(graph::make_constant(view.dtype, view.shape, view.data)));
  return values;
}

}  // namespace serin::samples
