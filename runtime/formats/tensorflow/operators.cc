// operators.cc: finds the row of an operator among the families.

#include "runtime/formats/tensorflow/operators.h"

#include <algorithm>
#include <unordered_map>

namespace serin::formats::tf {
namespace {

std::unordered_map<std::string_view, const OperatorRow*> all_operators() {
  std::unordered_map<std::string_view, const OperatorRow*> rows;
  for (const auto family :
       {control_operators(), elementwise_operators(), example_operators(), image_operators(), join_operators(), matrix_operators(),
        movement_operators(), reduction_operators(), selection_operators(), sparse_operators(), text_operators()})
    for (const OperatorRow& row : family) rows.emplace(row.name, &row);
  return rows;
}

size_t width_of(const Attrs& attrs, std::string_view key) {
  const auto found = attrs.find(key);
  if (found == attrs.end()) return 0;
  const int64_t number = found->second.integer.value_or(static_cast<int64_t>(found->second.list.size()));
  return number < 0 ? 0 : static_cast<size_t>(std::min(number, int64_t{INT32_MAX}));
}

}  // namespace

const OperatorRow* find_operator(std::string_view name) {
  static const auto rows = all_operators();
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

size_t output_place(const OperatorRow& row, const Attrs& attrs, std::string_view name, size_t index) {
  if (name.empty() || row.outputs.empty()) return index;
  size_t place = 0;
  for (std::string_view left = row.outputs; !left.empty();) {
    const size_t end = std::min(left.find(' '), left.size());
    const std::string_view output = left.substr(0, end);
    const size_t star = output.find('*');
    if (output.substr(0, star) == name) return index > SIZE_MAX - place ? SIZE_MAX : place + index;
    place += star == std::string_view::npos ? 1 : width_of(attrs, output.substr(star + 1));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return SIZE_MAX;
}

}  // namespace serin::formats::tf
