// cells.h: from an array of Arrow to cells.
#pragma once

#include <arrow/array.h>

#include <cstdint>
#include <deque>
#include <string>

#include "runtime/base/result.h"
#include "runtime/datasets/dataset.h"

namespace serin::datasets::columnar {

/// The value at `index` of an array that has passed ValidateFull() and is of a type that columns.h calls readable. The cell borrows from the
/// array, or from `memory`. An error is one of the row: lists of different lengths, or a null in a list.
Result<Cell> cell_at(const arrow::Array& array, int64_t index, std::deque<std::string>& memory);

}  // namespace serin::datasets::columnar
