// products.h: A matrix product inside another kernel, by the first row of MatMul that accepts it: a library's or our own.
//
//   auto product = products.prepare(MatMul{...}, dtype, a_shape, b_shape, y_shape, context, why);
//   product->run(stream, a, b, y, scratch)
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace serin::kernels::cuda {

class Product {
 public:
  explicit Product(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  size_t scratch_bytes() const { return kernel_->scratch_bytes(); }
  /// Of the row that was found, where it has one.
  std::string_view name() const { return kernel_->name(); }
  Fault run(const Stream& stream, const TensorView& a, const TensorView& b, TensorView y, std::byte* scratch) const {
    return run(stream, std::array<TensorView, 2>{a, b}, y, scratch);
  }
  /// With bias and residual, as the operator has them.
  Fault run(const Stream& stream, std::span<const TensorView> in, TensorView y, std::byte* scratch) const {
    Stream own = stream;
    own.scratch = scratch;
    return kernel_->run(own, in, {&y, 1});
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

class Products {
 public:
  explicit Products(std::vector<KernelRow> rows) : rows_(std::move(rows)) {}
  /// Nothing, with the last row's reason in `why`, if no row accepts it.
  std::optional<Product> prepare(const MatMul& op, DType dtype, const Shape& a, const Shape& b, const Shape& y, PrepareContext& context,
                                 std::string& why) const {
    return prepare(op, dtype, std::vector<Shape>{a, b}, y, context, why);
  }
  /// `in`: the shapes of all operands, with those of bias and residual.
  std::optional<Product> prepare(const MatMul& op, DType dtype, const std::vector<Shape>& in, const Shape& y, PrepareContext& context,
                                 std::string& why) const {
    const auto tensor = [dtype](const Shape& shape) {
      TensorDesc desc;
      desc.dtype = dtype, desc.shape = shape;
      return desc;
    };
    OpDesc desc{op, {}, {tensor(y)}};
    std::ranges::transform(in, std::back_inserter(desc.inputs), tensor);
    for (const KernelRow& row : rows_) {
      if (auto kernel = row.prepare(desc, context, why)) return Product(std::move(kernel));
    }
    return std::nullopt;
  }

 private:
  std::vector<KernelRow> rows_;
};

}  // namespace serin::kernels::cuda
