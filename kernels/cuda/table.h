// table.h: the kernels of a device, by kind of operator.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

/// `products`: rows of MatMul that go before our own; kernels that multiply inside (LSTM...) ask them, too.
KernelTable make_table(std::vector<KernelRow> products = {});

/// Sizes that only a run knows would have to come back to the host before the next kernel could start.
inline bool is_fixed(const TensorDesc& tensor) { return !tensor.bounded && tensor.dtype != DType::kString; }

/// Every row of a device is one of these.
template <class F>
KernelRow row(std::string name, F prepare) {
  return {std::move(name),
          [prepare = std::move(prepare)](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            if (!std::ranges::all_of(desc.inputs, is_fixed) || !std::ranges::all_of(desc.outputs, is_fixed))
              return refuse(why, "its sizes depend on the data, or its elements are strings");
            return prepare(desc, context, why);
          }};
}

/// A row for the operator of that name alone. To others it gives no reason: it is nothing that a reader of `--explain` could want to know.
inline KernelRow named(std::string_view op, const KernelRow& row) {
  return {row.name, [op, prepare = row.prepare](const OpDesc& desc, PrepareContext& context, std::string& why) -> std::unique_ptr<Kernel> {
            return std::get<Generic>(desc.op).name == op ? prepare(desc, context, why) : nullptr;
          }};
}

}  // namespace serin::kernels::cuda
