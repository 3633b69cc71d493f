// sized_run.h: runs a reference kernel whose outputs have as many elements as the data say: twice, as the engine does.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

/// A tensor that owns its elements.
struct Held {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::vector<std::byte> bytes = {};
  std::vector<std::string> strings = {};

  TensorView view(bool with_memory = true) {
    void* const data = dtype == DType::kString ? static_cast<void*>(strings.data()) : bytes.data();
    return {dtype, shape, with_memory ? data : nullptr};
  }
  void allocate() {
    bytes.assign(static_cast<size_t>(shape.elements()) * dtype_size(dtype) + 1, std::byte{0x5A});
    strings.assign(dtype == DType::kString ? static_cast<size_t>(shape.elements()) : 0, "?");
  }
  template <class T>
  std::vector<T> as() const {
    const auto* from = reinterpret_cast<const T*>(bytes.data());
    return std::vector<T>(from, from + shape.elements());
  }
};

template <class T>
Held tensor(Shape shape, const std::vector<T>& values) {
  Held held{std::is_same_v<T, float> ? DType::kFloat32 : std::is_same_v<T, int32_t> ? DType::kInt32 : DType::kInt64, shape};
  held.bytes.resize(values.size() * sizeof(T) + 1);
  if (!values.empty()) std::memcpy(held.bytes.data(), values.data(), values.size() * sizeof(T));
  return held;
}
inline Held texts(Shape shape, std::vector<std::string> values) { return {DType::kString, shape, {}, std::move(values)}; }

/// An output; without a shape that is known before, the kernel sets it.
struct Wanted {
  DType dtype;
  Shape shape;
  bool known = true;
};

struct SizedRun {
  std::vector<Held> outputs;
  std::string problem;  ///< a refusal or a fault

  SizedRun(std::string name, Attributes attributes, std::vector<Held> inputs, const std::vector<Wanted>& wanted) {
    OpDesc desc{Generic{std::move(name), std::move(attributes)}, {}, {}};
    for (const Held& each : inputs) desc.inputs.push_back({each.dtype, each.shape});
    for (const Wanted& each : wanted) desc.outputs.push_back({.dtype = each.dtype, .shape = each.shape, .bounded = !each.known});
    PackedWeights weights;
    PrepareContext context{&weights, 1};
    const auto kernel = generic(desc, context, problem);
    if (!kernel) return;
    std::vector<TensorView> in, out;
    for (Held& each : inputs) in.push_back(each.view());
    for (const Wanted& each : wanted) {
      outputs.push_back({each.dtype, each.shape});
      outputs.back().allocate();
      out.push_back(outputs.back().view(each.known));
    }
    for (int time = 0; time < 2 && problem.empty(); ++time) {
      Stream stream;
      if (const Fault fault = kernel->run(stream, in, out)) problem = *fault;
      for (size_t i = 0; i < out.size() && problem.empty(); ++i) {
        if (wanted[i].known || time > 0) continue;
        outputs[i].shape = out[i].shape;
        outputs[i].allocate();
        out[i] = outputs[i].view();
      }
    }
  }
};

inline Attributes with_attributes(std::initializer_list<std::pair<std::string, Attribute>> values) {
  Attributes attributes;
  for (const auto& [key, value] : values) attributes.set(key, value);
  return attributes;
}

}  // namespace serin::kernels::ref
