// parquet_result.h: results as a Parquet table: `row`, then columns that are kept, then outputs, with tensors as lists in each other.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/offline/result_file.h"

namespace serin::cli {

/// kUnsupported: the plugin for Parquet is not installed. kInvalidArgument: two results of one name, or an output of a type that Parquet does not have.
Result<std::unique_ptr<const ResultFile>> make_parquet_result(const std::string& path, ResultShape shape);

}  // namespace serin::cli
