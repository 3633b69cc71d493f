// json_parameter.h: converts a parameter of a request from JSON. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include "runtime/protocol/tensor/request_builder.h"

namespace serin::protocol {

inline ParameterValue parameter_value(const simdjson::dom::element& element) {
  using Type = simdjson::dom::element_type;
  switch (element.type()) {
    case Type::BOOL: return bool(element);
    case Type::INT64: return int64_t(element);
    case Type::UINT64: return uint64_t(element);
    case Type::STRING: return std::string_view(element);
    default: return {};
  }
}

}  // namespace serin::protocol
