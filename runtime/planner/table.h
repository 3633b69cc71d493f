// table.h: lays out rows of text in columns: the first to the left, the others to the right.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace serin::planner {

/// Rows of one length. Each line begins with `indent`. `left`: columns from the first that are aligned to the left.
inline std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view indent, size_t left = 1) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < left ? row[i] + gap : gap + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace serin::planner
