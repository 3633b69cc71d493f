// parquet_loader.cc: opens libserin_parquet.so at the first Parquet file. Apache Arrow is 62 MB and takes a tenth of a second to load, and few
// commands read Parquet; so it is a plugin.
//
// Arrow brings simdjson in another version than the one that the program is linked with, under the same names, so the plugin must see its own first.

#include "runtime/datasets/parquet_loader.h"

#include <fmt/format.h>

#include "runtime/base/plugin_file.h"
#include "runtime/datasets/readers.h"
#include "runtime/datasets/stored_file.h"

namespace serin::datasets {
namespace {

constexpr const char* kParquetFile = "libserin_parquet.so";

}  // namespace

Result<columnar::Plugin> load_parquet(const std::string& path) {
  columnar::Plugin plugin{};
  Status opened =
      open_plugin({.file = kParquetFile,
                   .entry = columnar::kPluginEntry,
                   .missing = fmt::format("Parquet is read with {}, which is not installed (deploy/README.md, \"Parquet\")", kParquetFile),
                   .path = path,
                   .own_names_first = true},
                  columnar::kPluginVersion, plugin);
  if (!opened && opened.error().code == Code::kNotFound) return Error{Code::kUnsupported, opened.error().message};
  if (!opened) return opened.error();
  return plugin;
}

Result<std::shared_ptr<const Dataset>> open_parquet(const std::string& path, const std::string& plugin_path) {
  SERIN_TRY(const std::shared_ptr<const StoredFile> file, StoredFile::open(path));
  const auto plugin = load_parquet(plugin_path);
  if (!plugin) return plugin.error().in(path);
  return plugin->open({path, file->size(), [file](uint64_t offset, size_t bytes, char* to) { return file->read(offset, bytes, to); }});
}

}  // namespace serin::datasets
