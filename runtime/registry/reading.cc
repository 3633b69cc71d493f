// reading.cc: the part of the registry that changes nothing: lists, pulls, checks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "runtime/registry/folder_lock.h"
#include "runtime/registry/history.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/registry.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

namespace fs = std::filesystem;

Result<OciLayout> layout_of(const std::string& folder, const std::string& model) {
  SERIN_CHECK(check_name("model", model));
  OciLayout layout(folder + "/" + model);
  SERIN_TRY(const bool exists, layout.exists());
  if (!exists) return Error{Code::kNotFound, fmt::format("{} has no model '{}'", folder, model)};
  return layout;
}

/// Whether the files of the version, and no others, are in the folder, with their contents.
Result<bool> holds(const fs::path& folder, const Version& version) {
  size_t present = 0, expected = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    present += it->is_regular_file(error);
  if (error) return io_error(folder, error);
  for (const StoredFile& file : version.files) {
    if (file.settings) continue;
    ++expected;
    if (!fs::is_regular_file(folder / file.path, error)) return false;
    SERIN_TRY(const Measured found, measure_file((folder / file.path).string()));
    if (found.digest != file.digest) return false;
  }
  return present == expected;
}

/// A folder that disappears unless it gets its name.
class Unfinished {
 public:
  explicit Unfinished(fs::path path) : path_(std::move(path)) { fs::remove_all(path_); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Status copy_checked(const OciLayout& layout, const StoredFile& file, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error) return io_error(to.parent_path(), error);
  SERIN_TRY(const Measured copied, copy_file(layout.blob_path(file.digest), to.string()));
  if (copied.digest != file.digest)
    return Error{Code::kCorrupt, fmt::format("{} has other contents than its digest says; '{}' is not delivered",
                                             layout.blob_path(file.digest), file.path)};
  return {};
}

Status write_settings(const OciLayout& layout, const StoredFile& file, const fs::path& folder) {
  const fs::path path = folder / file.path, aside = folder / fmt::format(".{}.{}", file.path, ::getpid());
  std::error_code error;
  if (fs::exists(path, error)) {
    SERIN_TRY(const Measured there, measure_file(path.string()));
    if (there.digest == file.digest) return {};
    return Error{Code::kAlreadyExists,
                 fmt::format("{} has other contents than the settings of this version; remove it, or pull elsewhere", path.string())};
  }
  fs::remove(aside, error);
  SERIN_CHECK(copy_checked(layout, file, aside));
  fs::rename(aside, path, error);
  return error ? Status(io_error(path, error)) : Status();
}

}  // namespace

Result<std::vector<std::string>> Registry::models() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!is_name(name)) continue;
    SERIN_TRY(const bool is_layout, OciLayout(it->path().string()).exists());
    if (is_layout) names.push_back(name);
  }
  if (error)
    return Error{error == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kIo,
                 fmt::format("{}: {}", folder_, error.message())};
  std::ranges::sort(names);
  return names;
}

Result<std::vector<Version>> Registry::versions(const std::string& model) const {
  SERIN_TRY(const OciLayout layout, layout_of(folder_, model));
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kShared));
  SERIN_TRY(const Index index, layout.index());
  return versions_of(layout, index);
}

Result<Version> Registry::find(const Reference& reference) const {
  SERIN_TRY(const std::vector<Version> list, versions(reference.model));
  return choose(list, reference, /*also_retired=*/true);
}

Result<std::vector<Change>> Registry::history(const std::string& model) const {
  SERIN_TRY(const OciLayout layout, layout_of(folder_, model));
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kShared));
  SERIN_TRY(const Index index, layout.index());
  return read_history(layout.folder() + "/history.jsonl", annotation(index.annotations, kHistory));
}

Result<Pulled> Registry::pull(const Reference& reference, const std::string& destination, Settings settings) const {
  SERIN_TRY(const OciLayout layout, layout_of(folder_, reference.model));
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kShared));  // gc() waits
  SERIN_TRY(const Index index, layout.index());
  SERIN_TRY(const std::vector<Version> list, versions_of(layout, index));
  SERIN_TRY(Version version, choose(list, reference, /*also_retired=*/false));
  const fs::path model = fs::path(destination) / reference.model, folder = model / std::to_string(version.number);
  std::error_code error;
  fs::create_directories(model, error);
  if (error) return io_error(model, error);
  for (const StoredFile& file : version.files)
    if (file.settings && settings == Settings::kWrite) SERIN_CHECK(write_settings(layout, file, model));
  if (fs::exists(folder, error)) {
    SERIN_TRY(const bool same, holds(folder, version));
    if (!same)
      return Error{Code::kAlreadyExists, fmt::format("{} has other contents than {}:{}", folder.string(), reference.model, version.number)};
    return Pulled{std::move(version), folder.string(), /*existed=*/true};
  }
  const Unfinished unfinished(model / fmt::format(".{}.{}", version.number, ::getpid()));
  for (const StoredFile& file : version.files)
    if (!file.settings) SERIN_CHECK(copy_checked(layout, file, unfinished.path() / file.path));
  fs::rename(unfinished.path(), folder, error);
  if (!error) return Pulled{std::move(version), folder.string()};
  std::error_code unknown;
  if (!fs::exists(folder, unknown)) return io_error(folder, error);
  SERIN_TRY(const bool same, holds(folder, version));  // another process was faster
  if (!same) return io_error(folder, error);
  return Pulled{std::move(version), folder.string(), /*existed=*/true};
}

Result<std::vector<std::string>> Registry::verify(const std::string& model) const {
  SERIN_TRY(const OciLayout layout, layout_of(folder_, model));
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kShared));
  std::vector<std::string> problems;
  const auto index = layout.index();
  if (!index) return std::vector<std::string>{index.error().message};
  const auto check_file = [&](const Descriptor& file, std::string_view of) {
    const auto measured = measure_file(layout.blob_path(file.digest));
    if (!measured)
      problems.push_back(fmt::format("{}: {}", of, measured.error().message));
    else if (measured->digest != file.digest || measured->bytes != file.size)
      problems.push_back(fmt::format("{}: {} has other contents than its digest says", of, layout.blob_path(file.digest)));
  };
  for (const Descriptor& entry : index->manifests) {
    const std::string name = annotation(entry.annotations, kRefName), of = name.empty() ? "report" : fmt::format("{}:{}", model, name);
    const auto manifest = layout.manifest(entry.digest);
    if (!manifest) {
      problems.push_back(fmt::format("{}: {}", of, manifest.error().message));
      continue;
    }
    if (!name.empty() && !names_version(entry)) continue;  // a tag: its version is looked at
    check_file(manifest->config, of);
    for (const Descriptor& layer : manifest->layers) check_file(layer, of);
  }
  if (problems.empty()) {
    if (const auto versions = versions_of(layout, *index); !versions) problems.push_back(versions.error().message);
  }
  const auto changes = read_history(layout.folder() + "/history.jsonl", annotation(index->annotations, kHistory));
  if (!changes) problems.push_back(changes.error().message);
  return problems;
}

}  // namespace serin::registry
