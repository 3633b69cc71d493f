#include "runtime/registry/remote.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/registry/folder_lock.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

constexpr std::string_view kPrefix = "registry+";
constexpr int kLongestDownload = 24 * 60 * 60;  // seconds for which another process is waited for

/// A manifest or its details, unless they are there.
Status take_text(const HttpFiles& files, const OciLayout& layout, const std::string& model, const Descriptor& wanted) {
  if (layout.blob(wanted.digest)) return {};
  const std::string name = OciLayout(model).blob_path(wanted.digest);
  if (wanted.size > kMostText)
    return Error{Code::kTooLarge,
                 fmt::format("{}: has {} bytes by its entry, over the limit of {}", files.url(name), wanted.size, kMostText)};
  SERIN_TRY(const auto read, files.read(name, kMostText));
  if (const std::string digest = digest_of(read->text); digest != wanted.digest)
    return Error{Code::kCorrupt,
                 fmt::format("{}: has other contents than its digest {} says (it has {})", files.url(name), wanted.digest, digest)};
  return write_file_atomically(layout.blob_path(wanted.digest), read->text);
}

/// All that versions_of() reads.
Status take_manifests(const HttpFiles& files, const OciLayout& layout, const std::string& model, const Index& index) {
  for (const Descriptor& entry : index.manifests) {
    const bool is_version = names_version(entry), is_report = entry.artifact_type == kReportType;
    if (!is_version && !is_report) continue;  // a tag, which names a version; or what other tools have added
    SERIN_CHECK(take_text(files, layout, model, entry));
    if (!is_version) continue;
    SERIN_TRY(const Manifest manifest, layout.manifest(entry.digest));
    SERIN_CHECK(take_text(files, layout, model, manifest.config));
  }
  return {};
}

}  // namespace

bool Remote::is_address(std::string_view text) {
  return text.starts_with("registry+http://") || text.starts_with("registry+https://") || S3Bucket::is_address(text);
}

Result<std::shared_ptr<Remote>> Remote::open(const std::string& address, const std::string& cache, const net::TlsClientOptions& tls) {
  std::shared_ptr<const S3Bucket> bucket;
  std::optional<net::Url> url;
  if (S3Bucket::is_address(address)) {
    SERIN_TRY(bucket, S3Bucket::open(address));
    url = bucket->folder_url();
  } else if (is_address(address)) {
    url = net::parse_url(std::string_view(address).substr(kPrefix.size()));
  }
  if (!url || url->path.find('?') != std::string::npos)
    return invalid(
        fmt::format("'{}' is not registry+https://HOST[:PORT]/PATH, without user, '?' and '#', nor s3://BUCKET[/PREFIX]", address));
  while (url->path.ends_with('/')) url->path.pop_back();
  auto context = net::TlsContext::for_client(tls);
  if (!context) return context.error().in("TLS");
  constexpr size_t kDigits = 16;
  std::string mirror = fmt::format("{}/remote/{}", cache, digest_of(text_of(*url) + "/").substr(sizeof("sha256:") - 1, kDigits));
  return std::shared_ptr<Remote>(new Remote(*std::move(url), *std::move(context), std::move(bucket), std::move(mirror)));
}

Result<std::vector<std::string>> Remote::refresh_all() {
  if (!bucket_) return invalid(files_.url("") + ": a web server has no list of models; name one");
  SERIN_TRY(const std::vector<std::string> folders, S3Bucket::folders(bucket_, tls_));
  std::vector<std::string> models;
  for (const std::string& folder : folders) {
    if (!is_name(folder)) continue;
    const Status done = refresh(folder);
    if (done)
      models.push_back(folder);
    else if (done.error().code != Code::kNotFound)
      return done.error();
  }
  if (models.empty()) return Error{Code::kNotFound, files_.url("") + ": no registry there: none of its folders is a model"};
  models_ = std::move(models);
  return models_;
}

Status Remote::refresh(const std::string& model) {
  SERIN_CHECK(check_name("model", model));
  const std::string name = model + "/index.json";
  TextFile& known = indices_[model];
  auto read = files_.read(name, kMostText, known.tag);
  if (!read && read.error().code == Code::kNotFound)
    return Error{Code::kNotFound, fmt::format("{}: no registry there, or it has no model '{}'", read.error().message, model)};
  if (!read) return read.error();
  const OciLayout layout(mirror_ + "/" + model);
  if (*read && (*read)->text != known.text) {
    auto index = parse_index(files_.url(name), (*read)->text);
    if (!index) return Error{index.error().code, index.error().message + ": no index of an OCI image layout"};
    SERIN_CHECK(layout.create());
    SERIN_CHECK(take_manifests(files_, layout, model, *index));
  }
  if (*read) known = **std::move(read);
  // Also when nothing has changed: a slower process may have written an older one.
  const std::string path = layout.folder() + "/index.json";
  if (const auto there = read_file(path, kMostText); there && *there == known.text) return {};
  return write_file_atomically(path, known.text);
}

Status Remote::fetch(const std::string& model, const Version& version) const {
  const OciLayout layout(mirror_ + "/" + model);
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder() + "/blobs", FolderLock::Mode::kExclusive, kLongestDownload));
  for (const StoredFile& file : version.files) {
    const std::string path = layout.blob_path(file.digest);
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      const auto there = measure_file(path);
      if (there && there->digest == file.digest) continue;
      std::filesystem::remove(path, error);
    }
    const auto done = files_.download(OciLayout(model).blob_path(file.digest), {file.digest, file.bytes}, path);
    if (!done) return done.error().in(fmt::format("{}:{}, file '{}'", model, version.number, file.path));
  }
  return {};
}

}  // namespace serin::registry
