// jsonl_dataset.cc: one JSON object a line. Values stay as they are in the source until a reader wants numbers of them.

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "runtime/datasets/readers.h"
#include "runtime/datasets/text_rows.h"

namespace serin::datasets {
namespace {

namespace ondemand = simdjson::ondemand;

Error not_json(simdjson::error_code code) {
  return Error{Code::kCorrupt, fmt::format("not a JSON object: {}", simdjson::error_message(code))};
}

/// Calls take(key, value) for each member of the object in `text`, behind which TextRows::kPadding bytes can be read.
template <class Take>
Status each_member(std::string_view text, const Take& take) {
  thread_local ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (const auto code = parser.iterate(text.data(), text.size(), text.size() + TextRows::kPadding).get(document)) return not_json(code);
  if (const auto code = document.get_object().get(object)) return not_json(code);
  for (auto found : object) {
    ondemand::field field;
    std::string_view key;
    if (const auto code = std::move(found).get(field)) return not_json(code);
    if (const auto code = field.unescaped_key().get(key)) return not_json(code);
    SERIN_CHECK(take(std::string(key), field.value()));
  }
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return at_end ? Status() : Status(Error{Code::kCorrupt, "not a JSON object: more text follows it on the line"});
}

Result<Cell> cell_of(ondemand::value& value, std::deque<std::string>& memory) {
  ondemand::json_type type{};
  if (const auto code = value.type().get(type)) return not_json(code);
  std::string_view text;
  if (type == ondemand::json_type::null) return Cell{};
  if (type == ondemand::json_type::string) {
    if (const auto code = value.get_string().get(text)) return not_json(code);
    return Cell{Cell::Kind::kText, {}, memory.emplace_back(text)};
  }
  if (const auto code = simdjson::to_json_string(value).get(text)) return not_json(code);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return Cell{Cell::Kind::kJson, {}, text};
}

class JsonlDataset : public Dataset {
 public:
  JsonlDataset(TextRows rows, std::vector<std::string> names) : rows_(std::move(rows)), names_(std::move(names)) {}

  int64_t rows() const override { return rows_.count(); }
  std::span<const std::string> columns() const override { return names_; }
  std::vector<std::string> files() const override { return {rows_.file().path()}; }
  std::string place(int64_t row) const override { return fmt::format("{}, row {} (line {})", rows_.file().path(), row, rows_.line(row)); }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    SERIN_TRY(TextRows::Block block, rows_.read(first, count));
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}};
    rows.cells.resize(static_cast<size_t>(count) * columns.size());
    // The texts stay where they are when the buffer moves: it is too long for the short form of a string.
    rows.memory.push_back(std::move(block.buffer));
    for (size_t row = 0; row < block.rows.size(); ++row) {
      const auto cells = std::span(rows.cells).subspan(row * columns.size(), columns.size());
      const Status parsed = each_member(block.rows[row], [&](const std::string& key, ondemand::value value) -> Status {
        for (size_t i = 0; i < columns.size(); ++i) {
          if (names_[columns[i]] != key) continue;
          SERIN_TRY(cells[i], cell_of(value, rows.memory));
          for (size_t same = i + 1; same < columns.size(); ++same)  // a value can be read once
            if (columns[same] == columns[i]) cells[same] = cells[i];
          break;
        }
        return {};
      });
      rows.faults.push_back(parsed ? std::nullopt : std::optional(parsed.error()));
    }
    return rows;
  }

 private:
  const TextRows rows_;
  const std::vector<std::string> names_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> open_jsonl(const std::string& path) {
  SERIN_TRY(TextRows rows, TextRows::index(path, std::nullopt));
  if (rows.count() == 0) return Error{Code::kCorrupt, path + ": has no rows"};
  SERIN_TRY(const TextRows::Block first, rows.read(0, 1));
  std::vector<std::string> names;
  const Status parsed = each_member(first.rows.front(), [&](std::string key, ondemand::value) -> Status {
    if (std::ranges::find(names, key) != names.end()) return Error{Code::kCorrupt, fmt::format("key '{}' is there twice", key)};
    names.push_back(std::move(key));
    return {};
  });
  if (!parsed) return parsed.error().in(fmt::format("{}, row 0 (line {})", path, rows.line(0)));
  return std::make_shared<JsonlDataset>(std::move(rows), std::move(names));
}

}  // namespace serin::datasets
