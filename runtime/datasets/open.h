// open.h: opens data by its name.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/datasets/dataset.h"

namespace serin::datasets {

/// Chooses the reader by the name: a folder, .npz, .jsonl or .ndjson, .csv, .tsv, .parquet, .json (COCO).
/// kUnsupported names a way out for others.
Result<std::shared_ptr<const Dataset>> open(const std::string& path);

}  // namespace serin::datasets
