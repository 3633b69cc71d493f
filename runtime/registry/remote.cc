#include "runtime/registry/remote.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/registry/folder_lock.h"

namespace serin::registry {
namespace {

constexpr int kLongestDownload = 24 * 60 * 60;  // seconds for which another process is waited for

}  // namespace

Result<std::vector<std::string>> Remote::refresh_all() { return invalid(files_.url("") + ": this server has no list of models; name one"); }

Result<Pushed> Remote::push(const std::string&, const Reference&, const std::string&) {
  return invalid(files_.url("") + ": Serin pushes to s3://BUCKET/PREFIX only; skopeo copies to a container registry");
}

Status Remote::take_text(const OciLayout& layout, const std::string& model, const Descriptor& wanted) const {
  if (layout.blob(wanted.digest)) return {};
  const std::string name = blob_name(model, wanted.digest);
  if (wanted.size > kMostText)
    return Error{Code::kTooLarge,
                 fmt::format("{}: has {} bytes by its entry, over the limit of {}", files_.url(name), wanted.size, kMostText)};
  SERIN_TRY(const auto read, files_.read(name, kMostText));
  if (const std::string digest = digest_of(read->text); digest != wanted.digest)
    return Error{Code::kCorrupt,
                 fmt::format("{}: has other contents than its digest {} says (it has {})", files_.url(name), wanted.digest, digest)};
  return write_file_atomically(layout.blob_path(wanted.digest), read->text);
}

Status Remote::fetch(const std::string& model, const Version& version) const {
  const OciLayout layout(mirror_ + "/" + model);
  SERIN_TRY(const FolderLock lock, FolderLock::acquire(layout.folder() + "/blobs", FolderLock::Mode::kExclusive, kLongestDownload));
  for (const StoredFile& file : version.files) {
    const std::string path = layout.blob_path(file.digest), name = blob_name(model, file.digest);
    const Contents wanted{file.digest, file.bytes};
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      const auto there = measure_file(path);
      if (there && there->digest == file.digest) {
        if (peers_) peers_->offer(wanted, path);
        continue;
      }
      std::filesystem::remove(path, error);
    }
    const Status done = peers_ ? peers_->download(files_, name, wanted, path) : files_.download(name, wanted, path);
    for (const std::string_view unfinished : {".part", ".chunks"})  // of a start with other flags
      if (done) std::filesystem::remove(fmt::format("{}{}", path, unfinished), error);
    if (!done) return done.error().in(fmt::format("{}:{}, file '{}'", model, version.number, file.path));
  }
  return {};
}

}  // namespace serin::registry
