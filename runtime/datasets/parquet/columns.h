// columns.h: the columns of a Parquet file, as Serin names and reads them.
#pragma once

#include <arrow/type.h>
#include <parquet/arrow/schema.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace serin::datasets::columnar {

/// A field of the table, or a field of a struct in it: "image.bytes". A column is read without the other fields of its struct.
struct Column {
  std::string name;
  std::vector<std::string> path;  ///< fields from the table down: {"image", "bytes"}
  std::vector<int> leaves;        ///< what Parquet stores for it
  std::string refusal;            ///< empty, or why it cannot be read: "is of type date32[day], ..."
};

/// In the order of the file. An error names a name that is there twice.
Result<std::vector<Column>> columns_of(const parquet::arrow::SchemaManifest& manifest);

}  // namespace serin::datasets::columnar
