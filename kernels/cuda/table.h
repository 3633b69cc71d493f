// table.h: The kernels of a device, by kind of operator.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

/// `products`: rows of MatMul that precede our own; kernels with inner products (LSTM...) use them, too.
KernelTable make_table(std::vector<KernelRow> products = {});

inline bool is_string(const TensorDesc& tensor) { return tensor.dtype == DType::kString; }
inline bool is_sized_by_data(const TensorDesc& tensor) { return tensor.bounded; }
template <class F>
bool any_operand(const OpDesc& desc, F is) {
  return std::ranges::any_of(desc.inputs, is) || std::ranges::any_of(desc.outputs, is);
}

// Every row of a device is one of these three.

/// Its kernels know all sizes when they are prepared.
template <class F>
KernelRow row(std::string name, F prepare) {
  return {std::move(name),
          [prepare = std::move(prepare)](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            if (any_operand(desc, is_string)) return refuse(why, "its elements are strings");
            if (any_operand(desc, is_sized_by_data)) return refuse(why, "its sizes depend on the data");
            return prepare(desc, context, why);
          }};
}

/// Its kernels read sizes from the views of a run, except those of results that they size themselves (sizes.h).
template <class F>
KernelRow row_of_views(std::string name, F prepare) {
  return {std::move(name),
          [prepare = std::move(prepare)](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            if (any_operand(desc, is_string)) return refuse(why, "its elements are strings");
            return prepare(desc, context, why);
          }};
}

/// Preparing one of its kernels costs almost nothing: no weights, no scratch. If the data decides sizes, it is prepared again in each run
/// (remade.cc).
KernelRow row_of_remade(std::string name, std::unique_ptr<Kernel> (*prepare)(const OpDesc&, PrepareContext&, std::string& why));

/// A row for the operator of that name alone. For others it gives no reason, because `--explain` should not list it.
inline KernelRow named(std::string_view op, const KernelRow& row) {
  return {row.name, [op, prepare = row.prepare](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            return std::get<Generic>(desc.op).name == op ? prepare(desc, context, why) : nullptr;
          }};
}

}  // namespace serin::kernels::cuda
