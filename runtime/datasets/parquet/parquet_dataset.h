// parquet_dataset.h: a Parquet file as a Dataset.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/datasets/dataset.h"
#include "runtime/datasets/parquet/plugin.h"

namespace serin::datasets::columnar {

/// Errors name the file. kUnsupported: it is encrypted, or compressed in a way that this Arrow does not know.
Result<std::shared_ptr<const Dataset>> open_dataset(Source source);

}  // namespace serin::datasets::columnar
