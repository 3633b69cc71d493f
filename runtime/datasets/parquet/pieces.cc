#include "runtime/datasets/parquet/pieces.h"

#include <arrow/array/array_nested.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>

namespace serin::datasets::columnar {
namespace {

/// Follows the path of a column into a batch. Where a struct is null, so are its fields.
arrow::Result<std::shared_ptr<arrow::Array>> array_of(const arrow::RecordBatch& batch, const Column& column) {
  std::shared_ptr<arrow::Array> array = batch.GetColumnByName(column.path.front());
  for (size_t level = 1; array && level < column.path.size(); ++level) {
    const auto& fields = static_cast<const arrow::StructArray&>(*array);
    const int field = fields.struct_type()->GetFieldIndex(column.path[level]);
    if (field < 0) return arrow::Status::Invalid("its schema does not go with its data");
    ARROW_ASSIGN_OR_RAISE(array, fields.GetFlattenedField(field));
  }
  if (!array) return arrow::Status::Invalid("its schema does not go with its data");
  return array;
}

}  // namespace

std::string Pieces::place_of(size_t group) const {
  return fmt::format("row group {} (rows {} to {})", group, starts_[group], starts_[group + 1] - 1);
}

Result<std::vector<std::shared_ptr<const Piece>>> Pieces::read(int64_t first, int64_t count, const std::vector<size_t>& columns) {
  const Turn turn(turns_, first);
  std::vector<std::shared_ptr<const Piece>> pieces;
  for (int64_t row = first; row < first + count; row = pieces.back()->first + pieces.back()->count) {
    SERIN_TRY(std::shared_ptr<const Piece> piece, piece_at(row, columns));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Result<std::shared_ptr<const Piece>> Pieces::piece_at(int64_t row, const std::vector<size_t>& columns) {
  const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) { return kept.piece->holds(row, columns); });
  if (found != kept_.end()) return found->piece;
  SERIN_TRY(Scan* const scan, scan_before(row, columns));
  while (true) {
    const auto kept = next_piece(*scan);
    // It has ended, or where it stands is not known. The last piece of a row group has the rows that none before it has.
    if (!kept || scan->next == starts_[scan->group + 1]) scans_.pop_front();
    if (!kept) return kept.error();
    keep(*kept);
    if (kept->piece->holds(row, columns)) return kept->piece;
  }
}

/// Puts it in front.
Result<Pieces::Scan*> Pieces::scan_before(int64_t row, const std::vector<size_t>& columns) {
  const auto group = static_cast<size_t>(std::ranges::upper_bound(starts_, row) - starts_.begin()) - 1;
  auto best = scans_.end();
  for (auto scan = scans_.begin(); scan != scans_.end(); ++scan)
    if (scan->group == group && scan->columns == columns && scan->next <= row && (best == scans_.end() || scan->next > best->next))
      best = scan;
  if (best != scans_.end()) {
    scans_.splice(scans_.begin(), scans_, best);
    return &scans_.front();
  }
  Scan scan{group, columns, nullptr, starts_[group]};
  const Status opened = without_exceptions(*file_, place_of(group), [&]() -> Status {
    std::vector<int> leaves;
    for (const size_t column : columns) leaves.insert(leaves.end(), columns_[column].leaves.begin(), columns_[column].leaves.end());
    const auto facts = reader_->parquet_reader()->metadata()->RowGroup(static_cast<int>(group));
    const int64_t rows = starts_[group + 1] - starts_[group];
    int64_t row_bytes = 1;
    for (const int leaf : leaves) row_bytes += std::max<int64_t>(facts->ColumnChunk(leaf)->total_uncompressed_size(), 0) / rows;
    reader_->set_batch_size(std::clamp<int64_t>(kPieceBytes / row_bytes, 1, kMostPieceRows));
    auto batches = reader_->GetRecordBatchReader({static_cast<int>(group)}, leaves);
    if (!batches.ok()) return error_of(*file_, place_of(group), batches.status());
    scan.batches = *std::move(batches);
    return {};
  });
  if (!opened) return opened.error();
  if (scans_.size() >= kMostScans) scans_.pop_back();
  scans_.push_front(std::move(scan));
  return &scans_.front();
}

Result<Pieces::Kept> Pieces::next_piece(Scan& scan) const {
  const std::string place = place_of(scan.group);
  return without_exceptions(*file_, place, [&]() -> Result<Kept> {
    const auto failed = [&](const arrow::Status& status) { return error_of(*file_, place, status); };
    std::shared_ptr<arrow::RecordBatch> batch;
    if (const auto read = scan.batches->ReadNext(&batch); !read.ok()) return failed(read);
    if (!batch || batch->num_rows() == 0 || batch->num_rows() > starts_[scan.group + 1] - scan.next)
      return failed(arrow::Status::Invalid("it has another number of rows than the file says"));
    auto piece = std::make_shared<Piece>();
    piece->first = scan.next;
    piece->count = batch->num_rows();
    piece->columns = scan.columns;
    for (const size_t column : scan.columns) {
      const auto in_column = [&](const arrow::Status& status) {
        return error_of(*file_, fmt::format("{}: column '{}'", place, columns_[column].name), status);
      };
      auto array = array_of(*batch, columns_[column]);
      if (!array.ok()) return in_column(array.status());
      // What was damaged may give offsets that lead anywhere.
      if (const auto valid = (*array)->ValidateFull(); !valid.ok()) return in_column(valid);
      piece->arrays.push_back(*std::move(array));
    }
    scan.next += piece->count;
    return Kept{std::move(piece), arrow::util::TotalBufferSize(*batch)};
  });
}

void Pieces::keep(Kept kept) {
  kept_bytes_ += kept.bytes;
  kept_.push_back(std::move(kept));
  while (kept_bytes_ > kMostKept && kept_.size() > 1) {
    kept_bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
}

}  // namespace serin::datasets::columnar
