#include "runtime/serving/settings/tensor_reshape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace serin::serving {
namespace {

bool is_open(int64_t dim) { return dim < 0; }

/// The elements between open sizes: as many in front of the first, between it and the second, and so on. Empty where they are more than 64 bits count.
std::vector<int64_t> products(std::span<const int64_t> dims) {
  std::vector<int64_t> products = {1};
  for (const int64_t dim : dims) {
    if (is_open(dim))
      products.push_back(1);
    else if (__builtin_mul_overflow(products.back(), dim, &products.back()))
      return {};
  }
  return products;
}

Shape mapped(const Shape& shape, const std::vector<int64_t>& from, const std::vector<int64_t>& to, bool batched) {
  if (shape.rank() != from.size() + (batched ? 1 : 0)) return shape;
  Shape result;
  if (batched) result.push_back(shape[0]);
  size_t at = 0;
  const auto next_open = [&] {
    while (!is_open(from[at])) ++at;
    return shape[at++ + (batched ? 1 : 0)];
  };
  for (const int64_t dim : to) result.push_back(is_open(dim) ? next_open() : dim);
  return result;
}

}  // namespace

Result<TensorReshape> TensorReshape::of(const std::string& name, std::vector<int64_t> outside, std::vector<int64_t> inside) {
  const auto is_size = [](int64_t dim) { return dim == -1 || dim > 0; };
  const bool fits = Shape::fits(outside.size() + 1) && Shape::fits(inside.size() + 1);  // with the batch
  const auto products_outside = products(outside), products_inside = products(inside);
  if (fits && std::ranges::all_of(outside, is_size) && std::ranges::all_of(inside, is_size) && !products_outside.empty() &&
      products_outside == products_inside)
    return TensorReshape{std::move(outside), std::move(inside)};
  return Error{Code::kInvalidArgument,
               fmt::format("'{}': reshape from dims [{}] to [{}]: both have the same elements between the same open sizes", name,
                           fmt::join(outside, ","), fmt::join(inside, ","))};
}

Shape TensorReshape::inward(const Shape& shape, bool batched) const { return mapped(shape, outside, inside, batched); }

Shape TensorReshape::outward(const Shape& shape, bool batched) const { return mapped(shape, inside, outside, batched); }

bool TensorReshapes::any() const {
  const auto is_set = [](const auto& reshape) { return reshape.has_value(); };
  return std::ranges::any_of(inputs, is_set) || std::ranges::any_of(outputs, is_set) || !chosen.empty();
}

}  // namespace serin::serving
