// pieces.h: decodes row groups in pieces, and keeps the last ones for the threads of a run.
//
// Parquet stores a column of a row group as pages that can only be decoded from the first one on. So a scan of a row group goes forward, and a
// run whose threads ask for blocks in their order decodes each page once. A block before all scans begins a new one: right, but slower.
#pragma once

#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/datasets/parquet/columns.h"
#include "runtime/datasets/parquet/source_file.h"
#include "runtime/datasets/parquet/turns.h"

namespace serin::datasets::columnar {

/// Rows next to each other, of one row group, with the columns that were asked for. Immutable.
struct Piece {
  int64_t first = 0, count = 0;
  std::vector<size_t> columns;
  std::vector<std::shared_ptr<arrow::Array>> arrays;  ///< of each of `columns`; fully validated

  bool holds(int64_t row, const std::vector<size_t>& wanted) const { return row >= first && row < first + count && columns == wanted; }
};

/// Thread-safe. One thread decodes at a time, the one that asks for the lowest row. Memory: kMostKept, and a piece and a page of each column
/// for every scan.
class Pieces {
 public:
  static constexpr int64_t kPieceBytes = int64_t{4} << 20, kMostPieceRows = 4096;
  static constexpr int64_t kMostKept = int64_t{64} << 20;
  static constexpr size_t kMostScans = 8;

  /// `starts`: the first row of each row group, and the number of all rows.
  Pieces(std::shared_ptr<SourceFile> file, std::unique_ptr<parquet::arrow::FileReader> reader, std::vector<Column> columns,
         std::vector<int64_t> starts)
      : file_(std::move(file)), columns_(std::move(columns)), starts_(std::move(starts)), reader_(std::move(reader)) {}

  const SourceFile& file() const { return *file_; }
  const std::vector<Column>& columns() const { return columns_; }
  int64_t rows() const { return starts_.back(); }

  /// The pieces that have `count` rows from `first` on, in their order. `columns`: sorted, each once.
  Result<std::vector<std::shared_ptr<const Piece>>> read(int64_t first, int64_t count, const std::vector<size_t>& columns);

 private:
  struct Scan {
    size_t group = 0;
    std::vector<size_t> columns;
    std::unique_ptr<arrow::RecordBatchReader> batches;
    int64_t next = 0;  ///< the row behind the last piece
  };
  struct Kept {
    std::shared_ptr<const Piece> piece;
    int64_t bytes;
  };
  std::string place_of(size_t group) const;
  Result<std::shared_ptr<const Piece>> piece_at(int64_t row, const std::vector<size_t>& columns) SERIN_REQUIRES(turns_);
  Result<Scan*> scan_before(int64_t row, const std::vector<size_t>& columns) SERIN_REQUIRES(turns_);
  Result<Kept> next_piece(Scan& scan) const;
  void keep(Kept kept) SERIN_REQUIRES(turns_);

  const std::shared_ptr<SourceFile> file_;
  const std::vector<Column> columns_;
  const std::vector<int64_t> starts_;
  Turns turns_;
  const std::unique_ptr<parquet::arrow::FileReader> reader_;  // used in a turn; destroyed after the scans
  std::list<Scan> scans_ SERIN_GUARDED_BY(turns_);            // the one used last is the first
  std::deque<Kept> kept_ SERIN_GUARDED_BY(turns_);            // the oldest is the first
  int64_t kept_bytes_ SERIN_GUARDED_BY(turns_) = 0;
};

}  // namespace serin::datasets::columnar
