// constant_forms.h: converts constants to the form that a device reads: 16-bit floats, or another order of axes.
//
// Each form is made once for all plans of a model.
//
//   ConstantPtr narrow = forms.get(weight, DType::kBFloat16);
//   ConstantPtr last = forms.get(narrow, narrow->dtype, {0, 2, 3, 1});   // [o, c, h, w] -> [o, h, w, c]
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/graph/constant.h"

namespace serin::engine {

/// Thread-safe.
class ConstantForms {
 public:
  /// Returns the elements of `constant`, f32 or a 16-bit float, as `dtype`; finite numbers stay finite. Axis i of the result is axis
  /// axes[i] of the constant; without `axes` the order stays. The form of a large constant is a recipe, like the constant itself.
  graph::ConstantPtr get(const graph::ConstantPtr& constant, DType dtype, const std::vector<int64_t>& axes = {});

 private:
  struct Key {
    uint64_t id;
    DType dtype;
    std::vector<int64_t> axes;
    auto operator<=>(const Key&) const = default;
  };
  struct Form {
    std::weak_ptr<const graph::Constant> of;  ///< forms of a plan's own constants end with it
    graph::ConstantPtr form;
  };

  Mutex mutex_;
  std::map<Key, Form> forms_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::engine
