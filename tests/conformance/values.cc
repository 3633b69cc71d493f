#include "tests/conformance/values.h"

#include <fmt/format.h>

#include <utility>

namespace serin::conformance {

using engine::Value;

Value to_value(const formats::FileValue& value, DType dtype) {
  if (value.tensor) return Value::of(value.tensor);
  Value converted{value.kind, dtype, nullptr, {}};
  for (const formats::FileValue& element : value.elements) converted.elements.push_back(to_value(element, dtype));
  return converted;
}

std::string difference(const Value& actual, const Value& expected, const cli::Tolerance& tolerance) {
  if (actual.kind != expected.kind || static_cast<bool>(actual.tensor) != static_cast<bool>(expected.tensor) ||
      actual.elements.size() != expected.elements.size())
    return fmt::format("{}, expected {}", engine::describe(actual), engine::describe(expected));
  if (expected.tensor) return cli::compare(engine::view_of(*actual.tensor), engine::view_of(*expected.tensor), tolerance).why_not;
  for (size_t i = 0; i < expected.elements.size(); ++i)
    if (const std::string why = difference(actual.elements[i], expected.elements[i], tolerance); !why.empty())
      return fmt::format("element {}: {}", i, why);
  return {};
}

}  // namespace serin::conformance
