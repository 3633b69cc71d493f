// operators.cc: finds the row of an operator by its name in either format.

#include "runtime/formats/paddle/operators.h"

#include <map>
#include <string>

namespace serin::formats::paddle {
namespace {

using Table = std::map<std::string_view, const OperatorRow*, std::less<>>;

Table table_of(std::string_view OperatorRow::* names) {
  Table table;
  const std::span<const OperatorRow> families[] = {
      elementwise_operators(), creation_operators(),    movement_operators(),  index_operators(),       reduction_operators(),
      network_operators(),     image_operators(),       product_operators(),   transformer_operators(), recurrent_operators(),
      detection_operators(),   suppression_operators(), quantised_operators(), control_operators(),     array_operators(),
  };
  for (const auto family : families) {
    for (const OperatorRow& row : family) {
      const std::string_view words = row.*names;
      for (size_t begin = 0; begin < words.size();) {
        const size_t end = std::min(words.find(' ', begin), words.size());
        table.emplace(words.substr(begin, end - begin), &row);
        begin = end + 1;
      }
    }
  }
  return table;
}

}  // namespace

const OperatorRow* find_operator(const Program& program, std::string_view type) {
  static const Table desc = table_of(&OperatorRow::desc), pir = table_of(&OperatorRow::pir);
  const Table& table = program.pir ? pir : desc;
  const auto found = table.find(type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace serin::formats::paddle
