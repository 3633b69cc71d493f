// attributes.h: An operator's attributes by name. The engine passes a graph node's attributes on unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace serin::kernels {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

class Attributes {
 public:
  void set(std::string key, Attribute value) { values_.insert_or_assign(std::move(key), std::move(value)); }
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }

  // By name; the fallback if absent or of another type.
  int64_t integer(std::string_view key, int64_t fallback) const { return get(key, fallback); }
  double number(std::string_view key, double fallback) const { return get(key, fallback); }
  std::string text(std::string_view key, std::string_view fallback) const { return get(key, std::string(fallback)); }
  std::vector<int64_t> integers(std::string_view key) const { return get(key, std::vector<int64_t>()); }
  std::vector<double> numbers(std::string_view key) const { return get(key, std::vector<double>()); }
  std::vector<std::string> texts(std::string_view key) const { return get(key, std::vector<std::string>()); }

 private:
  template <class T>
  T get(std::string_view key, T fallback) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return fallback;
    const T* value = std::get_if<T>(&found->second);
    return value ? *value : fallback;
  }

  std::map<std::string, Attribute, std::less<>> values_;
};

}  // namespace serin::kernels
