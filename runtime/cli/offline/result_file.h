// result_file.h: a file of a model's answers: encoded block by block, then joined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/offline/block_store.h"
#include "runtime/cli/offline/row_model.h"

namespace serin::cli {

/// Immutable. Each result begins with the number of its row, `row`.
class ResultFile {
 public:
  virtual ~ResultFile() = default;
  /// `rows` has the kept columns from `first_kept` on. Rows at fault are left out.
  virtual Result<std::string> encode(const datasets::Rows& rows, const Answers& answers) const = 0;
  /// Writes the file at `path` from the encoded blocks 0 to `blocks`, which read(block) returns.
  virtual Status join(const std::string& path, int64_t blocks, const std::function<Result<std::string>(int64_t)>& read) const = 0;
};

struct ResultShape {
  std::vector<steps::TensorFacts> outputs;
  std::vector<std::string> kept;  ///< names of columns that are copied
  size_t first_kept = 0;          ///< their place in the rows
};

/// kInvalidArgument: two results of one name.
Status check_result_names(const ResultShape& shape);

/// By the ending of the path: .jsonl, .csv, .tsv, .npz; parquet_result.h makes the others. kInvalidArgument: another ending, two results of one name, or something that the
/// format cannot hold.
Result<std::unique_ptr<const ResultFile>> make_result_file(const std::string& path, ResultShape shape);

}  // namespace serin::cli
