// scope.cc: finds values by name.

#include "runtime/formats/paddle/scope.h"

#include <fmt/format.h>

namespace serin::formats::paddle {

graph::ValueId Scope::find(std::string_view name) {
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  b.fail(Code::kCorrupt, fmt::format("value '{}' is read before anything defines it", name));
  return b.number(DType::kFloat32, 0);
}

Array* Scope::array(std::string_view name) {
  const auto other = array_names.find(name);
  if (other != array_names.end()) name = other->second;
  if (!program.pir && declared(name).array && !arrays.contains(std::string(name))) create_array(*this, std::string(name));
  const auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : &found->second;
}

const Declared& Scope::declared(std::string_view name) const {
  static const Declared undeclared;
  const auto found = program.declared.find(name);
  return found == program.declared.end() ? undeclared : found->second;
}

}  // namespace serin::formats::paddle
