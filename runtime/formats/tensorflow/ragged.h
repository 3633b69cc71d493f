// ragged.h: rows of different lengths, one after the other.
#pragma once

#include "runtime/graph/builder.h"

namespace serin::formats::tf {

/// The lengths of rows that begin at `splits` [rows + 1].
graph::ValueId lengths_between(graph::Builder& b, graph::ValueId splits);
/// Values [k] as [rows, width]: shorter rows are filled up with the default [], longer ones are cut. Without a width it is that of the
/// longest row.
graph::ValueId padded_rows(graph::Builder& b, graph::ValueId values, graph::ValueId lengths, graph::ValueId standard, graph::ValueId width);

}  // namespace serin::formats::tf
