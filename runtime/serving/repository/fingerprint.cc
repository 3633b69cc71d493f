// fingerprint.cc: a few calls of stat and readdir. Links are followed: Kubernetes mounts ConfigMaps and volumes as such.

#include "runtime/serving/repository/fingerprint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "runtime/formats/model_file.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

/// The error's number; 0: it was looked at.
int append_stat(const fs::path& path, std::vector<int64_t>& parts) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    parts.push_back(-1);
    return error;
  }
  parts.insert(parts.end(), {static_cast<int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                             status.st_ctim.tv_sec, status.st_ctim.tv_nsec});
  return 0;
}

}  // namespace

Status FingerprintMaker::add_files(const std::string& folder, std::vector<std::string> names) {
  std::ranges::stable_partition(names, formats::has_model_ending);
  for (const std::string& name : names) {
    if (left_ == 0) {
      append_stat(folder, made_.parts);
      break;
    }
    --left_;
    const int error = append_stat(fs::path(folder) / name, made_.parts);
    if (error != 0 && !says_not_there(error) && formats::has_model_ending(name))
      return file_error(fmt::format("'{}' cannot be looked at", name), error);
  }
  return {};
}

Status FingerprintMaker::add(const std::string& path) {
  auto inside = list_folder(path);
  if (!inside && inside.error().code != Code::kNotFound) return Error{inside.error().code, "its folder " + inside.error().message};
  if (!inside) {
    const int error = append_stat(path, made_.parts);
    return error == 0 || says_not_there(error) ? Status() : file_error("it cannot be looked at", error);
  }
  SERIN_CHECK(add_files(path, std::move(inside->files)));
  for (const std::string& folder : inside->folders) add_inner((fs::path(path) / folder).string());
  return {};
}

/// What cannot be looked at here is of no account until a model wants it.
void FingerprintMaker::add_inner(const std::string& folder) {
  std::error_code ignored;
  auto inside = left_ > 0 ? list_folder(folder) : Listing();
  if (!inside || left_ == 0) {
    append_stat(folder, made_.parts);
    return;
  }
  --left_;
  (void)add_files(folder, std::move(inside->files));
  if (fs::is_symlink(folder, ignored)) return;  // one that leads back here has no end
  for (const std::string& inner : inside->folders) add_inner((fs::path(folder) / inner).string());
}

}  // namespace serin::serving
