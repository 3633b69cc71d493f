// dataset.cc: finds columns by name.

#include "runtime/datasets/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/nearest_name.h"

namespace serin::datasets {

Result<size_t> Dataset::column(std::string_view name) const {
  const auto names = columns();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) {
    const auto index = static_cast<size_t>(found - names.begin());
    SERIN_CHECK(readable(index));
    return index;
  }
  constexpr size_t kMostNamed = 20;
  const auto shown = names.first(std::min(names.size(), kMostNamed));
  return Error{Code::kNotFound, fmt::format("there is no column '{}'{}; columns: {}{}", name, did_you_mean(name, names),
                                            fmt::join(shown, ", "), shown.size() < names.size() ? " ..." : "")};
}

Result<std::vector<size_t>> Dataset::columns_of(std::string_view list) const {
  std::vector<size_t> found;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    if (name.ends_with('*')) {
      const size_t before = found.size();
      for (size_t i = 0; i < columns().size(); ++i) {
        if (!columns()[i].starts_with(name.substr(0, name.size() - 1))) continue;
        SERIN_CHECK(readable(i));
        found.push_back(i);
      }
      if (found.size() == before) return Error{Code::kNotFound, fmt::format("no column matches '{}'", name)};
    } else {
      SERIN_TRY(const size_t index, column(name));
      found.push_back(index);
    }
    if (comma == std::string_view::npos) return found;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace serin::datasets
