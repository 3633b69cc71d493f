// operators.cc: finds the row of an operator among the families.

#include "runtime/formats/tensorflow/operators.h"

#include <unordered_map>

namespace serin::formats::tf {
namespace {

std::unordered_map<std::string_view, const OperatorRow*> all_operators() {
  std::unordered_map<std::string_view, const OperatorRow*> rows;
  for (const auto family : {control_operators(), elementwise_operators(), image_operators(), join_operators(), matrix_operators(),
                            movement_operators(), reduction_operators(), selection_operators(), text_operators()})
    for (const OperatorRow& row : family) rows.emplace(row.name, &row);
  return rows;
}

}  // namespace

const OperatorRow* find_operator(std::string_view name) {
  static const auto rows = all_operators();
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

size_t output_place(const OperatorRow& row, std::string_view name, size_t index) {
  if (name.empty() || row.outputs.empty()) return index;
  size_t place = 0;
  for (std::string_view left = row.outputs; !left.empty(); ++place) {
    const size_t end = std::min(left.find(' '), left.size());
    if (left.substr(0, end) == name) return index > SIZE_MAX - place ? SIZE_MAX : place + index;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return SIZE_MAX;
}

}  // namespace serin::formats::tf
