// parquet_loader.h: opens the plugin that reads and writes Parquet.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/datasets/parquet/plugin.h"

namespace serin::datasets {

/// `path`: of libserin_parquet.so; empty: next to the program, or in ../lib from there. kUnsupported: it is not installed.
Result<columnar::Plugin> load_parquet(const std::string& path = {});

}  // namespace serin::datasets
