// csv_dataset.cc: RFC 4180: fields between commas, or between quotation marks, where "" stands for one of them. The first row names the
// columns. A quoted empty field is an empty text; one without quotation marks is missing.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/datasets/readers.h"
#include "runtime/datasets/text_rows.h"

namespace serin::datasets {
namespace {

/// Cuts a row. Fields borrow from it, or from `memory` where a quotation mark is written twice.
Status cut_fields(std::string_view row, char separator, std::deque<std::string>& memory, std::vector<Cell>& fields) {
  fields.clear();
  while (true) {
    if (!row.starts_with('"')) {
      const size_t end = std::min(row.find(separator), row.size());
      const std::string_view text = row.substr(0, end);
      if (text.find('"') != std::string_view::npos)
        return Error{Code::kCorrupt,
                     fmt::format("field {} has a quotation mark inside; quote the field, and write \"\" for it", fields.size() + 1)};
      fields.push_back({text.empty() ? Cell::Kind::kMissing : Cell::Kind::kField, {}, text});
      if (end == row.size()) return {};
      row.remove_prefix(end + 1);
      continue;
    }
    row.remove_prefix(1);
    size_t end = row.find('"');
    bool doubled = false;
    while (end != std::string_view::npos && end + 1 < row.size() && row[end + 1] == '"') {
      doubled = true;
      end = row.find('"', end + 2);
    }
    if (end == std::string_view::npos || (end + 1 < row.size() && row[end + 1] != separator))
      return Error{Code::kCorrupt, fmt::format("field {} does not end where its quotation ends", fields.size() + 1)};
    std::string_view text = row.substr(0, end);
    if (doubled) {
      std::string& plain = memory.emplace_back();
      for (size_t i = 0; i < text.size(); ++i) {
        plain += text[i];
        if (text[i] == '"') ++i;
      }
      text = plain;
    }
    fields.push_back({Cell::Kind::kField, {}, text});
    if (end + 1 == row.size()) return {};
    row.remove_prefix(end + 2);
  }
}

class CsvDataset : public Dataset {
 public:
  CsvDataset(TextRows rows, std::vector<std::string> names, char separator)
      : rows_(std::move(rows)), names_(std::move(names)), separator_(separator) {}

  int64_t rows() const override { return rows_.count() - 1; }
  std::span<const std::string> columns() const override { return names_; }
  std::vector<std::string> files() const override { return {rows_.file().path()}; }
  std::string place(int64_t row) const override {
    return fmt::format("{}, row {} (line {})", rows_.file().path(), row, rows_.line(row + 1));
  }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    SERIN_TRY(TextRows::Block block, rows_.read(first + 1, count));
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}};
    rows.cells.resize(static_cast<size_t>(count) * columns.size());
    rows.memory.push_back(std::move(block.buffer));
    std::vector<Cell> fields;
    for (size_t row = 0; row < block.rows.size(); ++row) {
      Status cut = cut_fields(block.rows[row], separator_, rows.memory, fields);
      if (cut && fields.size() != names_.size())
        cut = Error{Code::kCorrupt, fmt::format("has {} fields, the header has {}", fields.size(), names_.size())};
      rows.faults.push_back(cut ? std::nullopt : std::optional(cut.error()));
      if (!cut) continue;
      for (size_t i = 0; i < columns.size(); ++i) rows.cells[row * columns.size() + i] = fields[columns[i]];
    }
    return rows;
  }

 private:
  const TextRows rows_;
  const std::vector<std::string> names_;
  const char separator_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> open_csv(const std::string& path, char separator) {
  SERIN_TRY(TextRows rows, TextRows::index(path, separator));
  if (rows.count() < 2) return Error{Code::kCorrupt, path + ": has no rows below a header"};
  SERIN_TRY(const TextRows::Block first, rows.read(0, 1));
  std::deque<std::string> memory;
  std::vector<Cell> header;
  if (const Status cut = cut_fields(first.rows.front(), separator, memory, header); !cut)
    return cut.error().in(fmt::format("{}: line {}", path, rows.line(0)));
  std::vector<std::string> names;
  for (const Cell& field : header) {
    if (field.text.empty()) return Error{Code::kCorrupt, fmt::format("{}: column {} of the header has no name", path, names.size() + 1)};
    if (std::ranges::find(names, field.text) != names.end())
      return Error{Code::kCorrupt, fmt::format("{}: the header names column '{}' twice", path, field.text)};
    names.emplace_back(field.text);
  }
  return std::make_shared<CsvDataset>(std::move(rows), std::move(names), separator);
}

}  // namespace serin::datasets
