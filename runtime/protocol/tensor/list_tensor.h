// list_tensor.h: derives the shape of a tensor that is sent as nested lists, and refuses ragged lists. It does not store the numbers.
//
//   tensor.open(); tensor.open(); tensor.element(); tensor.element(); tensor.close(); tensor.close();      // [[1, 2]]: shape [1, 2]
//
// The first element fixes the depth of all elements, and the first list of each depth fixes the length of lists there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/tensor.h"

namespace serin::protocol {

/// The elements of a tensor whose numbers are requested, in row-major order.
struct Range {
  size_t first = 0, last = 0;
  static constexpr Range all() { return {0, std::numeric_limits<size_t>::max()}; }
  bool holds(size_t index) const { return index >= first && index < last; }
  bool empty() const { return first == last; }
};

class ListTensor {
 public:
  /// Fills `shape`. `depth`: number of its axes that are open already; `ranked`: the rank is known, because this is another part of the
  /// same tensor.
  explicit ListTensor(Shape& shape, Range wanted, size_t depth = 0, bool ranked = false)
      : shape_(shape), wanted_(wanted), depth_(depth), ranked_(ranked) {}

  // False: the lists are not a tensor.
  bool open() {
    count();
    if (depth_ == shape_.rank()) {
      if (ranked_ || !Shape::fits(depth_ + 1)) return false;
      shape_.push_back(kOpen);
    }
    sizes_[depth_++] = 0;
    return true;
  }
  bool element() {
    count();
    ranked_ = true;
    ++elements_;
    return depth_ == shape_.rank();
  }
  bool close() {
    ranked_ = true;
    int64_t& size = shape_[--depth_];
    if (size == kOpen) size = sizes_[depth_];
    return size == sizes_[depth_];
  }

  size_t elements() const { return elements_; }
  bool wants_last() const { return wanted_.holds(elements_ - 1); }  ///< refers to the last element

 private:
  static constexpr int64_t kOpen = -1;
  void count() {
    if (depth_ > 0) ++sizes_[depth_ - 1];
  }

  Shape& shape_;
  const Range wanted_;
  size_t depth_;
  bool ranked_;
  size_t elements_ = 0;
  std::array<int64_t, Shape::kMaxRank> sizes_{};
};

}  // namespace serin::protocol
