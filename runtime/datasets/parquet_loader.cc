// parquet_loader.cc: opens libserin_parquet.so at the first Parquet file. Apache Arrow is 62 MB and takes a tenth of a second to load, and few
// commands read Parquet; so it is a plugin.
//
// Arrow brings simdjson in another version than the one that the program is linked with, under the same names. RTLD_DEEPBIND lets the plugin
// see its own first. It does not go with sanitizers, which want their own malloc() everywhere.
//
// The plugin is never closed: a dataset holds its code.

#include "runtime/datasets/parquet_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/base/file.h"
#include "runtime/datasets/readers.h"
#include "runtime/datasets/stored_file.h"

namespace serin::datasets {
namespace {

constexpr const char* kParquetFile = "libserin_parquet.so";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kParquetBinding = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kParquetBinding = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

}  // namespace

Result<columnar::Plugin> load_parquet(const std::string& path) {
  const std::string folder = program_folder();
  const auto candidates = path.empty() ? std::vector{folder + "/" + kParquetFile, folder + "/../lib/" + kParquetFile} : std::vector{path};
  std::vector<std::string> reasons;
  void* library = nullptr;
  for (size_t i = 0; i < candidates.size() && !library; ++i) {
    library = dlopen(candidates[i].c_str(), kParquetBinding);
    if (!library) reasons.emplace_back(dlerror());
  }
  if (!library)
    return Error{Code::kUnsupported, fmt::format("Parquet is read with {}, which is not installed (deploy/README.md, \"Parquet\"): {}",
                                                 kParquetFile, fmt::join(reasons, "; "))};
  const auto entry = reinterpret_cast<columnar::PluginEntry>(dlsym(library, columnar::kPluginEntry));
  if (!entry) return Error{Code::kFailedPrecondition, fmt::format("{} is no plugin of Serin: {}", kParquetFile, dlerror())};
  columnar::Plugin plugin{};
  if (!entry(columnar::kPluginVersion, &plugin))
    return Error{Code::kFailedPrecondition, fmt::format("{} is of another build than this program", kParquetFile)};
  return plugin;
}

Result<std::shared_ptr<const Dataset>> open_parquet(const std::string& path, const std::string& plugin_path) {
  SERIN_TRY(const std::shared_ptr<const StoredFile> file, StoredFile::open(path));
  const auto plugin = load_parquet(plugin_path);
  if (!plugin) return plugin.error().in(path);
  return plugin->open({path, file->size(), [file](uint64_t offset, size_t bytes, char* to) { return file->read(offset, bytes, to); }});
}

}  // namespace serin::datasets
