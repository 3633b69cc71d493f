// json_at.h: parts of a parsed JSON value by their pointer ("/status/phase", RFC 6901), for readers that take a part of another type for absent.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace serin::json_at {

/// Null: there is no such part.
inline const boost::json::value* find(const boost::json::value& value, std::string_view pointer) {
  boost::system::error_code none;
  return value.find_pointer(pointer, none);
}

/// Empty: there is no such text.
inline std::string text(const boost::json::value& value, std::string_view pointer) {
  const boost::json::value* const found = find(value, pointer);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

/// `fallback`: there is no such number.
inline double number(const boost::json::value& value, std::string_view pointer, double fallback = 0) {
  const boost::json::value* const found = find(value, pointer);
  return found && found->is_number() ? found->to_number<double>() : fallback;
}

inline bool is_true(const boost::json::value& value, std::string_view pointer) {
  const boost::json::value* const found = find(value, pointer);
  return found && found->is_bool() && found->get_bool();
}

}  // namespace serin::json_at
