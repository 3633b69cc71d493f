// parquet_dataset.cc: opens a file, and makes cells of its pieces. The footer says how many rows there are, and a run begins to count on it;
// so it is compared with what it says of the row groups and of their columns.

#include "runtime/datasets/parquet/parquet_dataset.h"

#include <fmt/format.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>

#include "runtime/datasets/parquet/cells.h"
#include "runtime/datasets/parquet/pieces.h"

namespace serin::datasets::columnar {
namespace {

/// Read at a time of each column, so that a row group need not fit into memory.
constexpr int64_t kBufferBytes = int64_t{64} << 10;

class ParquetDataset : public Dataset {
 public:
  explicit ParquetDataset(std::unique_ptr<Pieces> pieces) : pieces_(std::move(pieces)) {
    for (const Column& column : pieces_->columns()) names_.push_back(column.name);
  }

  int64_t rows() const override { return pieces_->rows(); }
  std::span<const std::string> columns() const override { return names_; }
  std::vector<std::string> files() const override { return {pieces_->file().path()}; }
  std::string place(int64_t row) const override { return fmt::format("{}, row {}", pieces_->file().path(), row); }
  Status readable(size_t column) const override {
    const Column& wanted = pieces_->columns()[column];
    if (wanted.refusal.empty()) return {};
    return Error{Code::kUnsupported, fmt::format("column '{}' {}", wanted.name, wanted.refusal)};
  }

  Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const override {
    for (const size_t column : columns) SERIN_CHECK(readable(column));
    Rows rows{.first = first, .columns = columns.size(), .cells = {}, .faults = {}, .memory = {}, .owners = {}};
    rows.cells.resize(static_cast<size_t>(count) * columns.size());
    rows.faults.resize(static_cast<size_t>(count));
    if (columns.empty()) return rows;
    std::vector<size_t> wanted(columns.begin(), columns.end());
    std::ranges::sort(wanted);
    wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
    SERIN_TRY(const auto pieces, pieces_->read(first, count, wanted));
    for (const auto& piece : pieces) {
      const int64_t begin = std::max(first, piece->first), end = std::min(first + count, piece->first + piece->count);
      const Status taken = without_exceptions(pieces_->file(), {}, [&]() -> Status {
        for (size_t i = 0; i < columns.size(); ++i) {
          const auto place = std::ranges::lower_bound(wanted, columns[i]) - wanted.begin();
          take_cells(*piece->arrays[static_cast<size_t>(place)], *piece, begin, end, i, columns[i], rows);
        }
        return {};
      });
      if (!taken) return taken.error();
      rows.owners.push_back(piece);
    }
    return rows;
  }

 private:
  void take_cells(const arrow::Array& array, const Piece& piece, int64_t row, int64_t end, size_t position, size_t column,
                  Rows& rows) const {
    for (; row < end; ++row) {
      const auto at = static_cast<size_t>(row - rows.first);
      auto cell = cell_at(array, row - piece.first, rows.memory);
      if (cell)
        rows.cells[at * rows.columns + position] = *cell;
      else if (!rows.faults[at])
        rows.faults[at] = Error{cell.error().code, fmt::format("column '{}': {}", names_[column], cell.error().message)};
    }
  }

  const std::unique_ptr<Pieces> pieces_;
  std::vector<std::string> names_;
};

/// The first row of each row group, and the number of all rows.
arrow::Result<std::vector<int64_t>> starts_of(const parquet::FileMetaData& facts) {
  std::vector<int64_t> starts{0};
  for (int group = 0; group < facts.num_row_groups(); ++group) {
    const auto of_group = facts.RowGroup(group);
    const int64_t rows = of_group->num_rows();
    const auto contradicts = [&](std::string_view what) {
      return arrow::Status::Invalid(fmt::format("its footer says that row group {} has {} rows, and {}", group, rows, what));
    };
    int64_t end = 0;
    if (rows < 0 || __builtin_add_overflow(starts.back(), rows, &end)) return contradicts("that is no number of rows");
    starts.push_back(end);
    for (int leaf = 0; leaf < facts.num_columns(); ++leaf) {
      const int64_t values = of_group->ColumnChunk(leaf)->num_values();
      const bool lists = facts.schema()->Column(leaf)->max_repetition_level() > 0;
      if (lists ? values < rows : values != rows)
        return contradicts(fmt::format("column '{}' {} values", facts.schema()->Column(leaf)->path()->ToDotString(), values));
    }
  }
  if (starts.back() != facts.num_rows())
    return arrow::Status::Invalid(
        fmt::format("its footer says that it has {} rows, and its row groups {}", facts.num_rows(), starts.back()));
  return starts;
}

Result<std::shared_ptr<const Dataset>> open_file(const std::shared_ptr<SourceFile>& file) {
  const auto failed = [&](const arrow::Status& status) { return error_of(*file, "not a Parquet file that can be read", status); };
  parquet::ReaderProperties reading;
  reading.enable_buffered_stream();
  reading.set_buffer_size(kBufferBytes);
  reading.set_page_checksum_verification(true);  // of pages that have one
  parquet::arrow::FileReaderBuilder builder;
  if (const auto opened = builder.Open(file, reading); !opened.ok()) return failed(opened);
  const auto facts = builder.raw_reader()->metadata();
  if (facts->is_encryption_algorithm_set()) return failed(arrow::Status::NotImplemented("it is encrypted"));
  auto starts = starts_of(*facts);
  if (!starts.ok()) return failed(starts.status());
  parquet::ArrowReaderProperties decoding(/*use_threads=*/false);
  decoding.set_pre_buffer(false);  // it would read whole row groups
  builder.properties(decoding);
  auto reader = builder.Build();
  if (!reader.ok()) return failed(reader.status());
  auto columns = columns_of((*reader)->manifest());
  if (!columns) return Error{columns.error().code, fmt::format("{}: {}", file->path(), columns.error().message)};
  return std::make_shared<ParquetDataset>(std::make_unique<Pieces>(file, *std::move(reader), *std::move(columns), *std::move(starts)));
}

}  // namespace

Result<std::shared_ptr<const Dataset>> open_dataset(Source source) {
  const auto file = std::make_shared<SourceFile>(std::move(source));
  return without_exceptions(*file, "not a Parquet file that can be read", [&] { return open_file(file); });
}

}  // namespace serin::datasets::columnar
