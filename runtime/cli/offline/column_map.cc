#include "runtime/cli/offline/column_map.h"

#include <fmt/format.h>

#include <map>

#include "runtime/base/nearest_name.h"

namespace serin::cli {
namespace {

constexpr std::string_view kPictures = "image";  // of a folder and of COCO

std::string names_of(const std::vector<steps::TensorFacts>& inputs) {
  std::string names;
  for (const steps::TensorFacts& input : inputs) names.append(names.empty() ? "" : ", ").append(input.name);
  return names;
}

}  // namespace

Result<ColumnMap> map_columns(const datasets::Dataset& data, const std::vector<steps::TensorFacts>& inputs,
                              const std::vector<std::string>& given) {
  std::map<std::string, std::string, std::less<>> lists;
  for (const std::string& pair : given) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size())
      return invalid(fmt::format("--map {}: must be INPUT=COLUMN", pair));
    const std::string input = pair.substr(0, equals);
    if (steps::find_tensor(inputs, input) == nullptr)
      return invalid(fmt::format("--map {}: the model has no input '{}'; inputs: {}", pair, input, names_of(inputs)));
    if (!lists.emplace(input, pair.substr(equals + 1)).second)
      return invalid(fmt::format("--map {}: input '{}' is mapped twice", pair, input));
  }
  ColumnMap map;
  for (const steps::TensorFacts& input : inputs) {
    const auto list = lists.find(input.name);
    auto found = data.columns_of(list == lists.end() ? input.name : list->second);
    if (!found && list != lists.end()) return invalid(fmt::format("--map {}={}: {}", input.name, list->second, found.error().message));
    if (!found && inputs.size() == 1 && input.dtype == DType::kString) found = data.columns_of(kPictures);
    if (!found) {
      const auto named = data.columns_of(input.name);
      return invalid(fmt::format("input '{}': {}; choose one with --map {}=COLUMN", input.name, named.error().message, input.name));
    }
    if (input.dtype == DType::kString && found->size() != 1)
      return invalid(fmt::format("--map {}: the input takes one column, not {}", input.name, found->size()));
    std::vector<size_t>& positions = map.inputs.emplace_back();
    for (const size_t column : *found) {
      positions.push_back(map.columns.size());
      map.columns.push_back(column);
    }
  }
  return map;
}

}  // namespace serin::cli
