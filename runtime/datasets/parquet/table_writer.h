// table_writer.h: writes tables as Parquet. Blocks of rows are encoded on any thread, kept by the caller, and joined in their order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/datasets/parquet/plugin.h"

namespace serin::datasets::columnar {

/// `cells`: row after row. An error names the column whose cell is of another type or rank.
Result<std::string> encode_block(const std::vector<TableColumn>& columns, std::span<const Cell> cells);

Result<std::unique_ptr<TableWriter>> write_table(const std::vector<TableColumn>& columns, std::function<Status(std::string_view)> to);

}  // namespace serin::datasets::columnar
