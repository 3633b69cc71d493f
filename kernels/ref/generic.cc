// generic.cc: from the name of an operator to its reference kernel.

#include "kernels/ref/generic.h"

#include <algorithm>

namespace serin::kernels::ref {

Prepared generic(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  for (const auto rows : {math_kernels(), norm_kernels(), selection_kernels(), image_kernels(), quant_kernels(), recurrent_kernels(),
                          text_kernels(), classifier_kernels()}) {
    const auto row = std::ranges::find(rows, op.name, &GenericRow::name);
    if (row != rows.end()) return row->prepare({op.attributes, desc.inputs, desc.outputs}, why);
  }
  return refuse(why, "no kernel computes it");
}

}  // namespace serin::kernels::ref
