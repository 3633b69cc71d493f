// text_rows.h: finds the rows of a file of texts, and reads blocks of them. Internal to runtime/datasets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/datasets/dataset.h"
#include "runtime/datasets/stored_file.h"

namespace serin::datasets {

/// Thread-safe. Rows end at line feeds; lines of blanks only are no rows.
class TextRows {
 public:
  /// `separator`: of fields; a line feed in a field between quotation marks does not end a row. Nothing: each line is a row. kCorrupt: the last
  /// quotation is not closed.
  static Result<TextRows> index(const std::string& path, std::optional<char> separator);

  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  const StoredFile& file() const { return *file_; }
  /// The line of a row, from 1.
  uint64_t line(int64_t row) const { return rows_[static_cast<size_t>(row)].line; }

  /// The texts of `count` rows in one buffer, with kPadding bytes behind the last one; without their line ends.
  struct Block {
    std::string buffer;
    std::vector<std::string_view> rows;
  };
  static constexpr size_t kPadding = 64;  ///< simdjson reads past the end of a text
  Result<Block> read(int64_t first, int64_t count) const;

 private:
  struct Row {
    uint64_t offset, line;
  };
  TextRows() = default;
  std::unique_ptr<const StoredFile> file_;
  std::vector<Row> rows_;
};

}  // namespace serin::datasets
