// plugin.h: the interface to libserin_parquet.so, the only part that links Apache Arrow (runtime/datasets/parquet_loader.cc explains why).
//
// Both sides are built from the same tree, and the version proves it. It changes with this file, dataset.h and result.h. No exception
// crosses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/datasets/dataset.h"

namespace serin::datasets::columnar {

inline constexpr uint32_t kPluginVersion = 1;
inline constexpr const char* kPluginEntry = "serin_parquet_plugin";

/// A file that several threads read in parts.
struct Source {
  std::string path;
  uint64_t size = 0;
  std::function<Status(uint64_t offset, size_t bytes, char* to)> read;
};

/// A column of a table that is written. Its values are cells: numbers or texts, tensors of them, or missing.
struct TableColumn {
  std::string name;
  DType dtype = DType::kUndefined;  ///< kString: texts; kUndefined: all values are missing
  size_t rank = 0;
  bool bytes = false;  ///< of texts: they need not be UTF-8
};

/// Not thread-safe.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  /// A block that encode() made with these columns. They are those of the table; but a type may be kUndefined, and texts need not be bytes.
  virtual Status append(const std::vector<TableColumn>& columns, std::string_view block) = 0;
  virtual Status finish() = 0;
};

struct Plugin {
  std::string library;  ///< "Arrow 26.0.1"
  Result<std::shared_ptr<const Dataset>> (*open)(Source source);
  /// `cells`: row after row. An error names the column whose cell is of another type or rank. Any thread may call it.
  Result<std::string> (*encode)(const std::vector<TableColumn>& columns, std::span<const Cell> cells);
  Result<std::unique_ptr<TableWriter>> (*write)(const std::vector<TableColumn>& columns, std::function<Status(std::string_view)> to);
};

/// Fills `plugin`. Returns true if `version` is its own kPluginVersion.
using PluginEntry = bool (*)(uint32_t version, Plugin* plugin);

}  // namespace serin::datasets::columnar
