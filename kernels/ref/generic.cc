// generic.cc: maps the name of an operator to its reference kernel.

#include "kernels/ref/generic.h"

#include <algorithm>

namespace serin::kernels::ref {

namespace {

const GenericRow* find(std::string_view name) {
  for (const auto rows : {math_kernels(), norm_kernels(), selection_kernels(), image_kernels(), quant_kernels(), recurrent_kernels(),
                          text_kernels(), classifier_kernels()}) {
    const auto row = std::ranges::find(rows, name, &GenericRow::name);
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

}  // namespace

Prepared generic(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  const GenericRow* const row = find(op.name);
  return row ? row->prepare({op.attributes, desc.inputs, desc.outputs}, why) : refuse(why, "no kernel computes it");
}

bool knows_generic(std::string_view name) { return find(name) != nullptr; }

}  // namespace serin::kernels::ref
