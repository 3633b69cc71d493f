// convert.h: from cells to elements of a tensor, to a text, to a number. Errors say what the cell is and what was wanted, not where it is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/datasets/dataset.h"

namespace serin::datasets {

/// Appends the elements of one row of a tensor of `dtype`, a type of numbers, and returns the shape of the row.
///
/// `wanted`: its shape, -1 for a size that the row decides. A flat list of as many elements as `wanted` has is accepted for it. Several
/// cells are one axis. Integers must fit and floats must be whole where `dtype` is of integers; floats are rounded to nearest.
Result<Shape> append_elements(std::span<const Cell> cells, DType dtype, const Shape& wanted, std::vector<std::byte>& to);

/// A text as it is. A number, too: a column of labels may have both.
Result<std::string> text_of(const Cell& cell);
/// A finite number.
Result<double> number_of(const Cell& cell);
/// "a tensor f32[64]", "the text 'abc'": for messages.
std::string describe(const Cell& cell);

}  // namespace serin::datasets
