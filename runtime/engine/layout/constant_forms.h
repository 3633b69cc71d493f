// constant_forms.h: constants as a device reads them: in 16 bits, with their axes in another order. Made once for all plans of a model.
//
//   ConstantPtr narrow = forms.get(weight, DType::kBFloat16);
//   ConstantPtr last = forms.get(narrow, narrow->dtype, {0, 2, 3, 1});   // [o, c, h, w] -> [o, h, w, c]
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/graph/constant.h"

namespace serin::engine {

/// Thread-safe.
class ConstantForms {
 public:
  /// The elements of `constant`, f32 or a 16-bit float, as `dtype` (what is finite stays finite), axis i of the result being axis axes[i] of the constant (no
  /// `axes`: in their order). A large one is a recipe, as the constant it is made of.
  graph::ConstantPtr get(const graph::ConstantPtr& constant, DType dtype, const std::vector<int64_t>& axes = {});

 private:
  struct Key {
    uint64_t id;
    DType dtype;
    std::vector<int64_t> axes;
    auto operator<=>(const Key&) const = default;
  };
  struct Form {
    std::weak_ptr<const graph::Constant> of;  ///< those of a plan's own constants go with it
    graph::ConstantPtr form;
  };

  std::mutex mutex_;
  std::map<Key, Form> forms_;  // guarded by mutex_
};

}  // namespace serin::engine
