// constant_forms.cc: makes and keeps the forms of constants. A form has the bytes of its constant or the way to get them, never the
// constant itself: when the constant is released, the form is released.

#include "runtime/engine/layout/constant_forms.h"

#include <utility>

#include "kernels/functors.h"
#include "kernels/indexing.h"

namespace serin::engine {

namespace {

using kernels::BFloat16;
using kernels::Half;

template <class From, class To>
void convert(const Shape& shape, const kernels::Strides& strides, const std::byte* from, std::byte* to) {
  const auto* x = reinterpret_cast<const From*>(from);
  auto* y = reinterpret_cast<To*>(to);
  kernels::for_each<1>(shape, {strides}, [&](int64_t i, const auto& at) { y[i] = kernels::saturate<To>(x[at[0]]); });
}

using Convert = void (*)(const Shape&, const kernels::Strides&, const std::byte*, std::byte*);

template <class To>
Convert convert_to(DType from) {
  if (from == DType::kFloat16) return convert<Half, To>;
  if (from == DType::kBFloat16) return convert<BFloat16, To>;
  return convert<float, To>;
}

Convert converter(DType from, DType to) {
  if (to == DType::kFloat16) return convert_to<Half>(from);
  if (to == DType::kBFloat16) return convert_to<BFloat16>(from);
  return convert_to<float>(from);
}

graph::ConstantPtr make(const graph::Constant& constant, DType dtype, const std::vector<int64_t>& axes) {
  const kernels::Strides dense = kernels::row_major_strides(constant.shape);
  Shape shape;
  kernels::Strides strides{};
  for (size_t i = 0; i < constant.shape.rank(); ++i) {
    const size_t axis = axes.empty() ? i : static_cast<size_t>(axes[i]);
    shape.push_back(constant.shape[axis]);
    strides[i] = dense[axis];
  }
  graph::Constant source = constant;  // its bytes, not itself
  const Convert run = converter(constant.dtype, dtype);
  return graph::make_constant(dtype, shape, [source = std::move(source), shape, strides, run](std::span<std::byte> to) -> Status {
    if (const auto data = source.data()) run(shape, strides, data.get(), to.data());
    return {};
  });
}

}  // namespace

graph::ConstantPtr ConstantForms::get(const graph::ConstantPtr& constant, DType dtype, const std::vector<int64_t>& axes) {
  const Key key{constant->id, dtype, axes};
  {
    const MutexLock lock(mutex_);
    if (const auto found = forms_.find(key); found != forms_.end()) return found->second.form;
    std::erase_if(forms_, [](const auto& entry) { return entry.second.of.expired(); });
  }
  graph::ConstantPtr made = make(*constant, dtype, axes);  // a small one is converted now, so outside the lock
  const MutexLock lock(mutex_);
  return forms_.try_emplace(key, Form{constant, std::move(made)}).first->second.form;
}

}  // namespace serin::engine
