#include "runtime/registry/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "runtime/registry/folder_lock.h"
#include "runtime/registry/history.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

namespace fs = std::filesystem;

std::string history_path(const OciLayout& layout) { return layout.folder() + "/history.jsonl"; }

struct Source {
  std::string from, path;
};

/// The files below a folder, in the order of their names. Names that begin with '.' are left out.
Result<std::vector<Source>> files_below(const fs::path& folder, const std::string& prefix) {
  std::vector<Source> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string(), path = prefix + name;
    if (name.starts_with('.')) continue;
    if (it->is_directory(error)) {
      if (it->is_symlink(error)) return invalid(it->path().string() + " is a link to a folder; copy the files");
      SERIN_TRY(std::vector<Source> below, files_below(it->path(), path + "/"));
      std::ranges::move(below, std::back_inserter(files));
    } else if (!is_safe_path(path)) {
      return invalid(it->path().string() + ": a name with control characters");
    } else {
      files.push_back({it->path().string(), path});
    }
  }
  if (error) return io_error(folder, error);
  std::ranges::sort(files, {}, &Source::path);
  return files;
}

Result<std::vector<Source>> sources_of(const std::string& model) {
  std::error_code error;
  if (!fs::exists(model, error)) return Error{Code::kNotFound, model + ": no such file or folder"};
  if (!fs::is_directory(model, error)) return std::vector<Source>{{model, fs::path(model).filename().string()}};
  SERIN_TRY(std::vector<Source> files, files_below(model, ""));
  if (files.empty()) return invalid(model + " has no files");
  return files;
}

}  // namespace

Result<std::string> content_digest(const Addition& addition) {
  SERIN_TRY(const std::vector<Source> sources, sources_of(addition.model));
  std::vector<StoredFile> files;
  for (const Source& source : sources) {
    SERIN_TRY(const Measured measured, measure_file(source.from));
    files.push_back({source.path, measured.digest, measured.bytes});
  }
  if (!addition.settings.empty()) {
    SERIN_TRY(const Measured measured, measure_file(addition.settings));
    files.push_back({"serin.yaml", measured.digest, measured.bytes, /*settings=*/true});
  }
  return content_of(std::move(files));
}

/// One change of a model, made while no other process changes it.
class Registry::Writer {
 public:
  static Result<Writer> open(const std::string& folder, const std::string& model, bool create) {
    SERIN_CHECK(check_name("model", model));
    const OciLayout layout(folder + "/" + model);
    if (create) {
      SERIN_CHECK(layout.create());
    } else {
      SERIN_TRY(const bool exists, layout.exists());
      if (!exists) return Error{Code::kNotFound, fmt::format("{} has no model '{}'", folder, model)};
    }
    SERIN_TRY(FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kExclusive));
    SERIN_TRY(Index index, layout.index());
    return Writer(layout, std::move(lock), std::move(index));
  }

  const OciLayout& layout() const { return layout_; }
  Index& index() { return index_; }
  Result<std::vector<Version>> versions() const { return versions_of(layout_, index_); }

  /// The record first: a line that the index does not name was no change.
  Status commit(const std::string& by, const std::string& event, const std::string& version, const std::string& detail) {
    auto last = index_.annotations.find(kHistory);
    if (last == index_.annotations.end()) last = index_.annotations.emplace(kHistory, "").first;
    SERIN_TRY(last->second, append_history(history_path(layout_), last->second, {time_now(), by, event, version, detail}));
    return layout_.replace_index(index_);
  }

 private:
  Writer(OciLayout layout, FolderLock lock, Index index) : layout_(std::move(layout)), lock_(std::move(lock)), index_(std::move(index)) {}

  OciLayout layout_;
  FolderLock lock_;
  Index index_;
};

Result<Added> Registry::add(const std::string& model, const Addition& addition, const std::string& by) {
  SERIN_CHECK(check_name("model", model));
  SERIN_TRY(const std::vector<Source> sources, sources_of(addition.model));
  SERIN_TRY(Writer writer, Writer::open(folder_, model, /*create=*/true));
  SERIN_TRY(const std::vector<Version> versions, writer.versions());
  Version made{.added = time_now(), .by = by, .details = addition.details, .origin = addition.origin};
  for (const Source& source : sources) {
    SERIN_TRY(const Descriptor file, writer.layout().put_file(kFileType, source.from));
    made.files.push_back({source.path, file.digest, file.size});
  }
  if (!addition.settings.empty()) {
    SERIN_TRY(const Descriptor file, writer.layout().put_file(kSettingsType, addition.settings));
    made.files.push_back({"serin.yaml", file.digest, file.size, /*settings=*/true});
  }
  made.content = content_of(made.files);
  if (!addition.number && !versions.empty() && versions.back().number == std::numeric_limits<decltype(made.number)>::max())
    return Error{Code::kFailedPrecondition,
                 fmt::format("no number follows {}:{}; name a free one with --version", model, versions.back().number)};
  made.number = addition.number.value_or(versions.empty() ? 1 : versions.back().number + 1);
  if (const auto same = std::ranges::find(versions, made.content, &Version::content); same != versions.end()) {
    const std::string name = fmt::format("{}:{}", model, same->number);
    if (same->retired)
      return Error{Code::kFailedPrecondition, fmt::format("these contents are {}, which is retired: {}", name, *same->retired)};
    if (addition.number && *addition.number != same->number) return Error{Code::kAlreadyExists, "these contents are already " + name};
    return Added{*same, /*existed=*/true};
  }
  if (std::ranges::find(versions, made.number, &Version::number) != versions.end())
    return Error{Code::kAlreadyExists, fmt::format("{}:{} has other contents", model, made.number)};
  SERIN_TRY(Descriptor entry, put_version(writer.layout(), model, made));
  made.digest = entry.digest;
  writer.index().manifests.push_back(std::move(entry));
  SERIN_CHECK(writer.commit(by, "add", std::to_string(made.number), made.digest));
  return Added{std::move(made)};
}

Status Registry::tag(const Reference& reference, const std::string& tag, const std::string& by) {
  SERIN_CHECK(check_name("tag", tag));
  if (tag == "latest" || std::ranges::all_of(tag, [](char c) { return c >= '0' && c <= '9'; }))
    return invalid(fmt::format("tag '{}': a number is a version, and 'latest' is always the newest", tag));
  SERIN_TRY(Writer writer, Writer::open(folder_, reference.model, /*create=*/false));
  SERIN_TRY(const std::vector<Version> versions, writer.versions());
  SERIN_TRY(const Version version, choose(versions, reference, /*also_retired=*/true));
  const std::string number = std::to_string(version.number);
  if (version.retired)
    return Error{Code::kFailedPrecondition, fmt::format("{}:{} is retired: {}", reference.model, number, *version.retired)};
  const std::string detail = move_tag(writer.index(), versions, version.number, tag);
  return detail.empty() ? Status() : writer.commit(by, "tag", number, detail);
}

Status Registry::untag(const std::string& model, const std::string& tag, const std::string& by) {
  SERIN_TRY(Writer writer, Writer::open(folder_, model, /*create=*/false));
  const Descriptor* const entry = number_of(tag) ? nullptr : entry_of(writer.index(), tag);
  if (!entry) return Error{Code::kNotFound, fmt::format("{} has no tag '{}'", model, tag)};
  SERIN_TRY(const std::vector<Version> versions, writer.versions());
  const auto version = std::ranges::find(versions, entry->digest, &Version::digest);
  const std::string number = version == versions.end() ? entry->digest : std::to_string(version->number);
  writer.index().manifests.erase(writer.index().manifests.begin() + (entry - writer.index().manifests.data()));
  return writer.commit(by, "untag", number, tag);
}

Status Registry::retire(const Reference& reference, const std::string& reason, const std::string& by) {
  SERIN_TRY(Writer writer, Writer::open(folder_, reference.model, /*create=*/false));
  SERIN_TRY(const std::vector<Version> versions, writer.versions());
  SERIN_TRY(const Version version, choose(versions, reference, /*also_retired=*/true));
  const std::string number = std::to_string(version.number);
  if (version.retired) return {};
  if (!version.tags.empty())
    return Error{Code::kFailedPrecondition,
                 fmt::format("{}:{} is '{}'; give that tag to another version first", reference.model, number, version.tags.front())};
  Descriptor* const entry = entry_of(writer.index(), number);
  entry->annotations[std::string(kRetired)] = reason;
  entry->annotations[std::string(kRetiredAt)] = time_now();
  return writer.commit(by, "retire", number, reason);
}

Status Registry::attach(const Reference& reference, const std::string& file, const std::string& by) {
  SERIN_TRY(Writer writer, Writer::open(folder_, reference.model, /*create=*/false));
  SERIN_TRY(const std::vector<Version> versions, writer.versions());
  SERIN_TRY(const Version version, choose(versions, reference, /*also_retired=*/true));
  const std::string title = fs::path(file).filename().string();
  if (!is_safe_path(title)) return invalid(fmt::format("'{}' is no name of a file", file));
  const OciLayout& layout = writer.layout();
  SERIN_TRY(Descriptor stored, layout.put_file(kReportType, file));
  const auto known = [&](const Report& report) { return report.title == title && report.digest == stored.digest; };
  if (std::ranges::any_of(version.reports, known)) return {};
  stored.annotations.emplace(kTitle, title);
  Manifest report{
      .artifact_type = std::string(kReportType), .subject = version.digest, .config = {}, .layers = {stored}, .annotations = {}};
  report.subject_size = entry_of(writer.index(), std::to_string(version.number))->size;
  SERIN_TRY(report.config, layout.put("application/vnd.oci.empty.v1+json", "{}"));
  report.annotations.emplace(kCreated, time_now());
  SERIN_TRY(Descriptor entry, layout.put(report));
  writer.index().manifests.push_back(std::move(entry));
  return writer.commit(by, "attach", std::to_string(version.number), fmt::format("{} {}", title, stored.digest));
}

Result<Collected> Registry::gc(const std::string& model, int days, const std::string& by) {
  SERIN_TRY(Writer writer, Writer::open(folder_, model, /*create=*/false));
  std::vector<Descriptor>& entries = writer.index().manifests;
  const OciLayout& layout = writer.layout();
  Collected done;
  std::set<std::string> gone;
  const std::string before = time_now(days);
  for (const Descriptor& entry : entries) {
    if (!names_version(entry) || !entry.annotations.contains(kRetired) || annotation(entry.annotations, kRetiredAt) > before) continue;
    done.versions.push_back(annotation(entry.annotations, kRefName));
    gone.insert(entry.digest);
  }
  std::set<std::string> kept, lost;
  for (const Descriptor& entry : entries) {
    SERIN_TRY(const Manifest manifest, layout.manifest(entry.digest));
    if (gone.contains(entry.digest) || gone.contains(manifest.subject)) {
      lost.insert(entry.digest);
      continue;
    }
    kept.insert({layout.blob_path(entry.digest), layout.blob_path(manifest.config.digest)});
    for (const Descriptor& layer : manifest.layers) kept.insert(layout.blob_path(layer.digest));
  }
  std::erase_if(entries, [&](const Descriptor& entry) { return lost.contains(entry.digest); });
  for (const std::string& version : done.versions) SERIN_CHECK(writer.commit(by, "gc", version, "removed"));
  SERIN_TRY(const std::vector<std::string> files, layout.blob_files());
  for (const std::string& file : files) {
    const std::string path = layout.blob_path(file);
    if (kept.contains(path)) continue;
    std::error_code error;
    const uintmax_t bytes = fs::file_size(path, error);
    if (!fs::remove(path, error)) return Error{Code::kIo, fmt::format("{} cannot be removed: {}", path, error.message())};
    ++done.blobs;
    done.bytes += bytes;
  }
  return done;
}

}  // namespace serin::registry
