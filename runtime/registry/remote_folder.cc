#include "runtime/registry/remote_folder.h"

#include <fmt/format.h>

#include "runtime/base/file.h"
#include "runtime/registry/oci_layout.h"
#include "runtime/registry/versions.h"

namespace serin::registry {

/// All that versions_of() reads.
Status RemoteFolder::take_manifests(const OciLayout& layout, const std::string& model, const Index& index) const {
  for (const Descriptor& entry : index.manifests) {
    const bool is_version = names_version(entry), is_report = entry.artifact_type == kReportType;
    if (!is_version && !is_report) continue;  // a tag, which names a version; or what other tools have added
    SERIN_CHECK(take_text(layout, model, entry));
    if (!is_version) continue;
    SERIN_TRY(const Manifest manifest, layout.manifest(entry.digest));
    SERIN_CHECK(take_text(layout, model, manifest.config));
  }
  return {};
}

Result<std::vector<std::string>> RemoteFolder::refresh_all() {
  if (!bucket_) return invalid(files_.url("") + ": a web server has no list of models; name one");
  SERIN_TRY(const std::vector<std::string> folders, S3Bucket::folders(bucket_, tls_));
  std::vector<std::string> models;
  for (const std::string& folder : folders) {
    if (!is_name(folder)) continue;
    const Status done = refresh({folder, ""});
    if (done)
      models.push_back(folder);
    else if (done.error().code != Code::kNotFound)
      return done.error();
  }
  if (models.empty()) return Error{Code::kNotFound, files_.url("") + ": no registry there: none of its folders is a model"};
  models_ = std::move(models);
  return models_;
}

Status RemoteFolder::refresh(const Reference& reference) {
  const std::string& model = reference.model;
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
    SERIN_CHECK(take_manifests(layout, model, *index));
  }
  if (*read) known = **std::move(read);
  // Also when nothing has changed: a slower process may have written an older one.
  const std::string path = layout.folder() + "/index.json";
  if (const auto there = read_file(path, kMostText); there && *there == known.text) return {};
  return write_file_atomically(path, known.text);
}

}  // namespace serin::registry
