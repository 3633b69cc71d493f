#include "runtime/registry/mlflow_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/registry/folder_lock.h"
#include "runtime/registry/mlflow_login.h"
#include "runtime/registry/mlflow_model.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestWait = 24 * 60 * 60;  // seconds for another process that downloads
constexpr size_t kMostMlmodel = 1 << 20;

/// What a version of MLflow is known by: a model may be deleted, and another one get its name and numbers.
Origin origin_of(const MlflowVersion& version) {
  Origin origin{{"mlflow.run", version.run}, {"mlflow.source", version.source}, {"mlflow.artifacts", quotable(version.artifacts)}};
  std::erase_if(origin, [](const auto& entry) { return entry.second.empty(); });  // a model may be logged without a run
  return origin;
}

}  // namespace

Result<Reference> parse_model_uri(std::string_view uri) {
  const auto no_uri = [&] {
    return invalid(fmt::format("'{}' is not models:/NAME/VERSION, models:/NAME@ALIAS or models:/NAME/latest of MLflow", uri));
  };
  if (!uri.starts_with(kModels)) return no_uri();
  const std::string_view rest = uri.substr(kModels.size());
  const size_t end = rest.find_first_of("/@");
  if (end == std::string_view::npos || end == 0 || end + 1 == rest.size()) return no_uri();
  Reference reference{std::string(rest.substr(0, end)), std::string(rest.substr(end + 1))};
  SERIN_CHECK(check_name("model", reference.model));
  SERIN_CHECK(check_name(rest[end] == '@' ? "alias" : "version", reference.version));
  if (rest[end] == '@' && number_of(reference.version)) return no_uri();
  return reference;
}

MlflowRegistry::MlflowRegistry(const net::Url& url, std::shared_ptr<const net::TlsContext> tls, std::string mirror)
    : Remote(url, tls, std::make_shared<const MlflowLogin>(), std::move(mirror)), server_(url, std::move(tls)) {}

Status MlflowRegistry::refresh(const Reference& reference) {
  SERIN_CHECK(check_name("model", reference.model));
  if (reference.version.empty() || is_digest(reference.version))
    return invalid(
        fmt::format("{}: name a version, an alias or latest; MLflow lists its versions itself, and knows no digests", reference.model));
  SERIN_TRY(const uint64_t number, server_.number_of(reference));
  SERIN_TRY(const MlflowVersion version, server_.version(reference.model, number));
  const OciLayout layout(mirror_ + "/" + reference.model);
  SERIN_CHECK(layout.create());
  SERIN_CHECK(take(layout, reference.model, version));
  if (registry::number_of(reference.version)) return {};
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kExclusive));
  SERIN_TRY(Index index, layout.index());
  const Descriptor* const entry = entry_of(index, std::to_string(number));
  if (!entry) return Error{Code::kConflict, reference.str() + ": another process has changed its mirror; try again"};
  return enter(index, *entry, reference.version) ? layout.replace_index(index) : Status();
}

/// With all of its files, by their sizes.
bool MlflowRegistry::is_there(const OciLayout& layout, const MlflowVersion& version) const {
  const auto index = layout.index();
  const auto versions = index ? versions_of(layout, *index) : Result<std::vector<Version>>(index.error());
  if (!versions) return false;
  const auto found = std::ranges::find(*versions, version.number, &Version::number);
  return found != versions->end() && found->added == version.created && found->origin == origin_of(version) &&
         std::ranges::all_of(found->files, [&](const StoredFile& file) {
           std::error_code error;
           return fs::file_size(layout.blob_path(file.digest), error) == file.bytes && !error;
         });
}

Status MlflowRegistry::take(const OciLayout& layout, const std::string& model, const MlflowVersion& version) const {
  if (is_there(layout, version)) return {};
  SERIN_TRY(const FolderLock downloading, FolderLock::acquire(layout.folder() + "/blobs", FolderLock::Mode::kExclusive, kLongestWait));
  if (is_there(layout, version)) return {};  // another process was first
  auto made = download(layout, version);
  if (!made) return made.error().in(fmt::format("{}:{}", model, version.number));
  SERIN_TRY(const Descriptor entry, put_version(layout, model, *made));
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kExclusive));
  SERIN_TRY(Index index, layout.index());
  return enter(index, entry, std::to_string(version.number)) ? layout.replace_index(index) : Status();
}

Result<Version> MlflowRegistry::download(const OciLayout& layout, const MlflowVersion& version) const {
  SERIN_TRY(const ArtifactFolder folder, server_.artifacts(version.artifacts));
  const std::string place = folder.place("MLmodel"), url = folder.server->url(place);
  const auto mlmodel = folder.server->read(place, kMostMlmodel);
  if (!mlmodel) return mlmodel.error();
  const auto chosen = read_mlmodel((*mlmodel)->text, url, folder.files);
  if (!chosen && chosen.error().code == Code::kInvalidArgument) return Error{Code::kCorrupt, chosen.error().message};
  if (!chosen) return chosen.error();
  Version made{.number = version.number, .digest = {}, .content = {}, .added = version.created, .by = version.by, .details = "{}"};
  made.origin = origin_of(version);
  const std::string arriving = layout.folder() + "/blobs/arriving";
  for (const ModelFile& file : chosen->files) {
    SERIN_TRY(const std::string digest, folder.server->download_new(folder.place(file.artifact.path), file.artifact.bytes, arriving));
    std::error_code error;
    fs::rename(arriving, layout.blob_path(digest), error);
    if (error) return io_error(layout.blob_path(digest), error);
    made.files.push_back({.path = file.name, .digest = digest, .bytes = file.artifact.bytes});
  }
  made.content = content_of(made.files);
  return made;
}

Status MlflowRegistry::fetch(const std::string& model, const Version& version) const {
  const OciLayout layout(mirror_ + "/" + model);
  const auto first_bad = [&] {
    return std::ranges::find_if(version.files, [&](const StoredFile& file) {
      const auto measured = measure_file(layout.blob_path(file.digest));
      return !measured || measured->digest != file.digest;
    });
  };
  auto bad = first_bad();
  if (bad == version.files.end()) return {};
  std::error_code error;
  fs::remove(layout.blob_path(bad->digest), error);
  SERIN_TRY(const MlflowVersion now, server_.version(model, version.number));
  SERIN_CHECK(take(layout, model, now));
  bad = first_bad();
  if (bad == version.files.end()) return {};
  return Error{Code::kCorrupt, fmt::format("{}:{}, file '{}': MLflow's server has other contents now than at the first download", model,
                                           version.number, bad->path)};
}

}  // namespace serin::registry
