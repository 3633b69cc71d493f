// parquet_result.cc: the type of a column that is kept is known once all blocks are there: a column of CSV has no type, and one of JSON may
// begin with nulls. Whether texts of an output are bytes is known then, too. So a block stores the types that it has seen, in front of its rows, and
// joining unites them before it writes.

#include "runtime/cli/offline/parquet_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "runtime/base/utf8.h"
#include "runtime/cli/offline/npz_writer.h"
#include "runtime/cli/offline/output_stream.h"
#include "runtime/datasets/parquet_loader.h"

namespace serin::cli {
namespace {

using datasets::Cell;
using datasets::columnar::TableColumn;

constexpr size_t kTypeBytes = 3;  // of each column in a block but that of the row: dtype, rank, whether texts are bytes

TableColumn type_of_cell(const Cell& cell) {
  if (cell.kind == Cell::Kind::kMissing) return {};
  if (cell.kind == Cell::Kind::kNumbers) return {{}, cell.numbers.dtype, cell.numbers.shape.rank(), false};
  return {{}, DType::kString, 0, !is_utf8(cell.text)};
}

bool has_bytes(const TensorView& view) {
  if (view.dtype != DType::kString) return false;
  const std::span<const std::string> texts(view.as<const std::string>(), static_cast<size_t>(view.elements()));
  return !std::ranges::all_of(texts, [](const std::string& text) { return is_utf8(text); });
}

/// Makes `column` a type of both. A type of values that are all missing goes with every other.
Status unite(TableColumn& column, const TableColumn& other) {
  if (other.dtype == DType::kUndefined) return {};
  if (column.dtype == DType::kUndefined) {
    column.dtype = other.dtype;
    column.rank = other.rank;
  }
  if (column.dtype != other.dtype || column.rank != other.rank)
    return invalid(fmt::format(
        "--keep '{}': it is {} of rank {} in one row and {} of rank {} in another, which no column of Parquet holds: write .jsonl",
        column.name, dtype_name(column.dtype), column.rank, dtype_name(other.dtype), other.rank));
  column.bytes = column.bytes || other.bytes;
  return {};
}

class ParquetResult : public ResultFile {
 public:
  ParquetResult(ResultShape shape, datasets::columnar::Plugin plugin) : shape_(std::move(shape)), plugin_(std::move(plugin)) {
    columns_.push_back({"row", DType::kInt64, 0, false});
    for (const std::string& name : shape_.kept) columns_.push_back({name, DType::kUndefined, 0, false});
    for (const steps::TensorFacts& output : shape_.outputs) columns_.push_back({output.name, output.dtype, output.shape.rank(), false});
  }

  Result<std::string> encode(const datasets::Rows& rows, const Answers& answers) const override {
    std::vector<TableColumn> columns = columns_;
    std::vector<int64_t> numbers(rows.count());
    std::vector<Cell> cells;
    for (size_t row = 0; row < rows.count(); ++row) {
      if (answers.faults[row]) continue;
      numbers[row] = rows.first + static_cast<int64_t>(row);
      cells.push_back({Cell::Kind::kNumbers, {DType::kInt64, {}, &numbers[row]}, {}});
      for (size_t i = 0; i < shape_.kept.size(); ++i) {
        cells.push_back(rows.cell(row, shape_.first_kept + i));
        SERIN_CHECK(unite(columns[1 + i], type_of_cell(cells.back())));
      }
      for (const TensorView& view : answers.row(row)) {
        TableColumn& column = columns[cells.size() % columns.size()];
        column.bytes = column.bytes || has_bytes(view);
        cells.push_back({Cell::Kind::kNumbers, view, {}});
      }
    }
    std::string block;
    for (const TableColumn& column : std::span(columns).subspan(1))
      block += {static_cast<char>(column.dtype), static_cast<char>(column.rank), static_cast<char>(column.bytes)};
    SERIN_TRY(const std::string encoded, plugin_.encode(columns, cells));
    return block + encoded;
  }

  Status join(const std::string& path, int64_t blocks, const std::function<Result<std::string>(int64_t)>& read) const override {
    std::vector<TableColumn> columns = columns_;
    const bool known = std::ranges::none_of(std::span(columns).subspan(1), [](const TableColumn& column) {
      return column.dtype == DType::kUndefined || column.dtype == DType::kString;
    });
    for (int64_t block = 0; block < blocks && !known; ++block) {
      SERIN_TRY(const std::string text, read(block));
      SERIN_TRY(const std::vector<TableColumn> found, columns_of(text));
      for (size_t i = 1; i < columns.size(); ++i) SERIN_CHECK(unite(columns[i], found[i]));
    }
    SERIN_TRY(auto out, OutputStream::create(path));
    SERIN_TRY(const auto writer, plugin_.write(columns, [&](std::string_view bytes) { return out.write(bytes); }));
    for (int64_t block = 0; block < blocks; ++block) {
      SERIN_TRY(const std::string text, read(block));
      SERIN_TRY(const std::vector<TableColumn> found, columns_of(text));
      SERIN_CHECK(writer->append(found, std::string_view(text).substr(type_bytes())));
    }
    SERIN_CHECK(writer->finish());
    return out.finish();
  }

 private:
  /// The columns of a block. Blocks come from a store that has checked them.
  Result<std::vector<TableColumn>> columns_of(std::string_view block) const {
    std::vector<TableColumn> columns = columns_;
    if (block.size() < type_bytes()) return Error{Code::kCorrupt, "a stored block is damaged"};
    for (size_t i = 1; i < columns.size(); ++i, block.remove_prefix(kTypeBytes)) {
      columns[i].dtype = static_cast<DType>(block[0]);
      columns[i].rank = static_cast<unsigned char>(block[1]);
      columns[i].bytes = block[2] != 0;
    }
    return columns;
  }
  size_t type_bytes() const { return kTypeBytes * (columns_.size() - 1); }

  const ResultShape shape_;
  const datasets::columnar::Plugin plugin_;
  std::vector<TableColumn> columns_;
};

}  // namespace

Result<std::unique_ptr<const ResultFile>> make_parquet_result(const std::string& path, ResultShape shape) {
  SERIN_CHECK(check_result_names(shape));
  for (const steps::TensorFacts& output : shape.outputs)
    if (output.dtype != DType::kString && !npz_descr(output.dtype))
      return invalid(fmt::format("{}: output '{}' is of type {}, which .parquet does not hold: write .jsonl", path, output.name,
                                 dtype_name(output.dtype)));
  auto plugin = datasets::load_parquet();
  if (!plugin) return plugin.error().in(path);
  return std::make_unique<const ParquetResult>(std::move(shape), *std::move(plugin));
}

}  // namespace serin::cli
