// dataset.h: reads the rows of a file, or of a folder, by name of a column. A command runs a model on blocks of them.
//
//   SERIN_TRY(const auto data, datasets::open("eval.npz"));             // or .jsonl, .csv, .tsv, .parquet, a folder of pictures, COCO's .json
//   SERIN_TRY(const size_t pixels, data->column("pixels"));
//   SERIN_TRY(const Rows rows, data->read(0, 32, std::array{pixels}));  // rows 0 to 31
//   SERIN_TRY(const Shape shape, append_elements({&rows.cell(0, 0), 1}, DType::kFloat32, Shape{64}, bytes));   // convert.h
//
// The order of the rows is that of the file; a folder is in the order of its names. Rows are numbered from 0. open() reads a file of texts
// once to find its rows, which costs 16 bytes of memory for each. After that, any block is read by itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::datasets {

/// A value as its file has it. It borrows from the Rows that it is in.
struct Cell {
  enum class Kind : uint8_t {
    kMissing,  ///< an empty field of CSV; null, or no such key, in JSON
    kNumbers,  ///< a tensor
    kText,     ///< a text, or the bytes of a picture
    kField,    ///< a field of CSV: a text or a number, as the caller needs it
    kJson,     ///< the source of a JSON value that is no text
  };
  Kind kind = Kind::kMissing;
  TensorView numbers;     ///< kNumbers; not to be written
  std::string_view text;  ///< the other kinds
};

/// A block of rows, with the columns that were asked for.
struct Rows {
  int64_t first = 0;
  size_t columns = 0;
  std::vector<Cell> cells;                   ///< row after row
  std::vector<std::optional<Error>> faults;  ///< of each row; such a row has no cells of use

  size_t count() const { return faults.size(); }
  const Cell& cell(size_t row, size_t column) const { return cells[row * columns + column]; }
  std::span<const Cell> row(size_t index) const { return {cells.data() + index * columns, columns}; }

  std::deque<std::string> memory;                   ///< of the cells
  std::vector<std::shared_ptr<const void>> owners;  ///< of memory that is not here
};

/// Thread-safe once open.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t rows() const = 0;
  /// In the order of the file. JSONL: the keys of its first row.
  virtual std::span<const std::string> columns() const = 0;
  /// Blocks outside of rows() are a mistake of the caller. A row that cannot be read is a fault of that row. An error is one of the file:
  /// kIo, or kCorrupt if it has changed.
  virtual Result<Rows> read(int64_t first, int64_t count, std::span<const size_t> columns) const = 0;
  /// "data.csv, row 7 (line 9)".
  virtual std::string place(int64_t row) const = 0;
  /// All files of it, sorted after the first; a digest of them is a digest of the data.
  virtual std::vector<std::string> files() const = 0;

  /// An error if a column is of a type that is never read: kUnsupported names it.
  virtual Status readable(size_t /*column*/) const { return {}; }

  /// kNotFound names the columns that there are. The error of readable().
  Result<size_t> column(std::string_view name) const;
  /// Columns by a list: "pixels", "height,width", "pixel_*" (all that begin so, in the order of the file).
  Result<std::vector<size_t>> columns_of(std::string_view list) const;
};

}  // namespace serin::datasets
