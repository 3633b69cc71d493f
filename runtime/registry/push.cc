// push.cc: a version of a registry in a folder goes into one in a bucket. The index decides: whoever replaces it on the condition that it is still
// the one that was read has made the change. Blobs before it have the names of their digests, so that they never differ. The record only grows;
// a writer that comes too late leaves a line there that is off the chain.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "runtime/registry/folder_lock.h"
#include "runtime/registry/history.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/remote_folder.h"
#include "runtime/registry/upload.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

constexpr int kPushes = 30;
constexpr std::chrono::milliseconds kWait{100};

void wait_a_little() {
  std::random_device random;
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % static_cast<unsigned>(kWait.count())));
}

}  // namespace

/// What is uploaded. The folder is not locked meanwhile: its files never change, and gc() removes only those of versions long retired.
class Shipment {
 public:
  static Result<Shipment> of(const std::string& folder, const Reference& reference) {
    const OciLayout layout(folder + "/" + reference.model);
    SERIN_TRY(const bool exists, layout.exists());
    if (!exists) return Error{Code::kNotFound, fmt::format("{} has no model '{}'", folder, reference.model)};
    SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder(), FolderLock::Mode::kShared));
    SERIN_TRY(Index index, layout.index());
    SERIN_TRY(const std::vector<Version> versions, versions_of(layout, index));
    SERIN_TRY(Version version, choose(versions, reference, /*also_retired=*/false));
    Shipment made(layout, std::move(version));
    if (std::ranges::find(made.version.tags, reference.version) != made.version.tags.end()) made.tag = reference.version;
    for (Descriptor& entry : index.manifests) {
      if (names_version(entry) && entry.digest == made.version.digest) made.entry = entry;
      if (entry.artifact_type != kReportType) continue;
      SERIN_TRY(const Manifest report, layout.manifest(entry.digest));
      if (report.subject == made.version.digest) made.reports.push_back(std::move(entry));
    }
    made.model = reference.model;
    return made;
  }

  OciLayout layout;
  Version version;
  std::string model, tag;  ///< tag: empty: none
  Descriptor entry;
  std::vector<Descriptor> reports;

 private:
  Shipment(OciLayout from, Version chosen) : layout(std::move(from)), version(std::move(chosen)) {}
};

namespace {

/// The index with the version in it, and how it differs from the one that is there.
struct Merged {
  Index index;
  Version version;
  std::vector<Descriptor> added;
  std::vector<Change> changes;
};

/// As Registry::add() decides: equal contents are one version.
Result<Version> version_there(const Shipment& shipment, const std::vector<Version>& versions, const std::string& there) {
  const Version& version = shipment.version;
  const std::string name = fmt::format("{}:{}", shipment.model, version.number);
  if (const auto same = std::ranges::find(versions, version.content, &Version::content); same != versions.end()) {
    if (same->retired)
      return Error{Code::kFailedPrecondition, fmt::format("{}: there these contents are {}:{}, which is retired: {}", there, shipment.model,
                                                          same->number, *same->retired)};
    if (same->number != version.number)
      return Error{Code::kAlreadyExists, fmt::format("{}: there the contents of {} are {}:{}", there, name, shipment.model, same->number)};
    return *same;
  }
  if (std::ranges::find(versions, version.number, &Version::number) != versions.end())
    return Error{Code::kAlreadyExists, fmt::format("{}: there {} has other contents; add the version under another number", there, name)};
  return version;
}

Result<Merged> merge(const Shipment& shipment, Index index, const std::vector<Version>& versions, const std::string& there,
                     const std::string& by) {
  Merged merged{.index = std::move(index), .version = {}, .added = {}, .changes = {}};
  SERIN_TRY(merged.version, version_there(shipment, versions, there));
  const std::string number = std::to_string(merged.version.number);
  if (!entry_of(merged.index, number)) {
    merged.added.push_back(shipment.entry);
    merged.changes.push_back({time_now(), by, "add", number, shipment.version.digest});
  }
  for (const Descriptor& report : shipment.reports) {
    // A report names its version by the digest of the manifest, which differs if the contents were added there on their own.
    if (merged.version.digest != shipment.version.digest ||
        std::ranges::find(merged.index.manifests, report.digest, &Descriptor::digest) != merged.index.manifests.end())
      continue;
    SERIN_TRY(const Manifest manifest, shipment.layout.manifest(report.digest));
    merged.added.push_back(report);
    for (const Descriptor& file : manifest.layers)
      merged.changes.push_back({time_now(), by, "attach", number, fmt::format("{} {}", annotation(file.annotations, kTitle), file.digest)});
  }
  std::ranges::copy(merged.added, std::back_inserter(merged.index.manifests));
  if (shipment.tag.empty()) return merged;
  if (std::string detail = move_tag(merged.index, versions, merged.version.number, shipment.tag); !detail.empty())
    merged.changes.push_back({time_now(), by, "tag", number, std::move(detail)});
  return merged;
}

Status upload_blobs(const HttpFiles& files, const Shipment& shipment, const std::vector<Descriptor>& manifests) {
  std::set<std::string> done;
  const auto upload = [&](const Descriptor& blob) -> Status {
    if (!done.insert(blob.digest).second) return {};
    return put_blob(files, OciLayout(shipment.model).blob_path(blob.digest), shipment.layout.blob_path(blob.digest),
                    {blob.digest, blob.size});
  };
  for (const Descriptor& entry : manifests) {
    SERIN_TRY(const Manifest manifest, shipment.layout.manifest(entry.digest));
    for (const Descriptor& layer : manifest.layers) SERIN_CHECK(upload(layer));
    SERIN_CHECK(upload(manifest.config));
    SERIN_CHECK(upload(entry));
  }
  return {};
}

/// Returns the digest of the last line.
Result<std::string> upload_record(const HttpFiles& files, const std::string& model, const std::string& last,
                                  const std::vector<Change>& changes) {
  const std::string path = model + "/history.jsonl";
  for (int attempt = 1;; ++attempt) {
    auto read = files.read(path, kMostText);
    if (!read && read.error().code != Code::kNotFound) return read.error();
    const TextFile known = read ? **std::move(read) : TextFile();
    SERIN_TRY(Extended extended, extend_history(files.url(path), known.text, last, changes));
    const Status done = put_text(files, path, extended.text, known.tag);
    if (done) return std::move(extended.last);
    if (done.error().code != Code::kConflict || attempt == kPushes) return done.error();
    wait_a_little();
  }
}

}  // namespace

Result<Pushed> RemoteFolder::push(const std::string& folder, const Reference& reference, const std::string& by) {
  if (!bucket_)
    return invalid(files_.url("") + ": a web server is read only; push to s3://BUCKET/PREFIX, or copy the folder of the registry");
  SERIN_TRY(const Shipment shipment, Shipment::of(folder, reference));
  for (int attempt = 1;; ++attempt) {
    auto pushed = push_once(shipment, by);
    if (pushed || pushed.error().code != Code::kConflict || attempt == kPushes) return pushed;
    wait_a_little();
  }
}

Result<Pushed> RemoteFolder::push_once(const Shipment& shipment, const std::string& by) {
  const std::string& model = shipment.model;
  const Status there = refresh({model, ""});
  if (!there && there.error().code != Code::kNotFound) return there.error();
  const std::string path = model + "/index.json";
  const TextFile known = there ? indices_[model] : TextFile();
  if (there && known.tag.empty())
    return Error{Code::kUnsupported, files_.url(path) + ": the server gives no ETag, without which two writers cannot be kept apart"};
  Index index;
  std::vector<Version> versions;
  if (there) {
    SERIN_TRY(index, parse_index(files_.url(path), known.text));
    SERIN_TRY(versions, versions_of(OciLayout(mirror_ + "/" + model), index));
  }
  SERIN_TRY(Merged merged, merge(shipment, std::move(index), versions, files_.url(model), by));
  if (merged.changes.empty()) return Pushed{std::move(merged.version), /*existed=*/true};
  SERIN_CHECK(upload_blobs(files_, shipment, merged.added));
  if (!there) {
    const Status marked = put_text(files_, model + "/oci-layout", std::string(kLayoutMark), "");
    if (!marked && marked.error().code != Code::kConflict) return marked.error();
  }
  auto last = merged.index.annotations.find(kHistory);
  if (last == merged.index.annotations.end()) last = merged.index.annotations.emplace(kHistory, "").first;
  SERIN_TRY(last->second, upload_record(files_, model, last->second, merged.changes));
  SERIN_CHECK(put_text(files_, path, print_index(merged.index), known.tag));
  return Pushed{std::move(merged.version)};
}

}  // namespace serin::registry
