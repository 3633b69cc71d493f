// model_layout.cc: a few calls of stat and readdir for each model. Links are followed: Kubernetes mounts ConfigMaps and volumes as such.

#include "runtime/serving/model_layout.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/log.h"
#include "runtime/formats/model_file.h"
#include "runtime/serving/catalogue.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 256;  // that a fingerprint looks at, of one folder

void append_stat(const fs::path& path, std::vector<int64_t>& parts) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return parts.push_back(-1);
  parts.insert(parts.end(), {static_cast<int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                             status.st_ctim.tv_sec, status.st_ctim.tv_nsec});
}

struct Listing {
  std::vector<std::string> folders, files;  // sorted
};

std::optional<Listing> list_folder(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    (entry->is_directory(ignored) ? listing.folders : listing.files).push_back(entry->path().filename().string());
  }
  if (error) return std::nullopt;
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

Fingerprint fingerprint_of(const fs::path& folder, const std::vector<std::string>& files) {
  Fingerprint fingerprint;
  for (size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) append_stat(folder / files[i], fingerprint.parts);
  return fingerprint;
}

Fingerprint fingerprint_of(const fs::path& path) {
  const auto inside = list_folder(path);
  if (inside) return fingerprint_of(path, inside->files);
  Fingerprint fingerprint;
  append_stat(path, fingerprint.parts);
  return fingerprint;
}

bool is_file(const ModelRoot& root) {
  std::error_code error;
  return fs::is_regular_file(root.path, error);
}

/// A file, or the folder of one model; where that has no versions, it is one.
ModelFiles list_single(const ModelRoot& root, Remarks& remarks) {
  if (is_file(root))
    return {.repository = root.path, .folder = {}, .settings = {}, .versions = {{1, {root.path, fingerprint_of(root.path)}}}};
  std::error_code error;
  ModelFiles model = list_model(root.name, root.path, remarks);
  if (model.versions.empty() && fs::exists(fs::path(root.path) / "model.onnx", error))
    model.versions[1] = {root.path, fingerprint_of(root.path)};
  model.repository = root.path;
  model.policy = root.versions;
  model.labels = root.labels;
  return model;
}

std::string name_of(const ModelRoot& root) { return root.name.empty() ? fs::path(root.path).stem().string() : root.name; }

Error not_there(const std::string& path) {
  const size_t scheme = path.find("://");
  if (scheme == std::string::npos) return {Code::kNotFound, fmt::format("{}: no such folder or file", path)};
  return {
      Code::kInvalidArgument,
      fmt::format("{}: object stores are not read: let {}... be put in a folder (KServe's storage initializer, a CSI driver that mounts "
                  "the bucket, an init container that copies it) and name that",
                  path, path.substr(0, scheme + 3))};
}

}  // namespace

void Remarks::say(const std::string& what) {
  if (said_.insert(what).second) log::warning("{}", what);
}

bool is_model_name(std::string_view name) {
  const auto fine = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 256 && name.front() != '.' && std::ranges::all_of(name, fine);
}

Status check_root(const ModelRoot& root) {
  std::error_code error;
  const bool file = is_file(root);
  if (!file && !fs::exists(root.path, error)) return not_there(root.path);
  if (!file && !fs::is_directory(root.path, error))
    return Error{Code::kInvalidArgument, fmt::format("{}: neither a folder nor a file", root.path)};
  if ((file || !root.name.empty()) && !is_model_name(name_of(root)))
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: '{}' is no name for a model: it has letters, digits, '_', '-' and '.' only", root.path, name_of(root))};
  return {};
}

std::string describe_misplaced(const ModelRoot& root) {
  const auto inside = list_folder(root.path);
  if (!inside || !root.name.empty()) return "";
  const auto is_model = [](const std::string& file) { return file.ends_with(".onnx"); };
  if (const auto model = std::ranges::find_if(inside->files, is_model); model != inside->files.end())
    return fmt::format("; '{}' lies right in it: serin serve {}", *model, (fs::path(root.path) / *model).string());
  std::error_code error;
  for (const std::string& folder : inside->folders)
    if (parse_version(folder) && fs::exists(fs::path(root.path) / folder / "model.onnx", error))
      return fmt::format("; '{}/model.onnx' lies in it, a version of one model: serin serve {} --name NAME", folder, root.path);
  const auto foreign = formats::describe_foreign_model(root.path);
  return foreign ? "; " + *foreign : "";
}

ModelFiles list_model(const std::string& name, const std::string& folder, Remarks& remarks) {
  ModelFiles model{.repository = {}, .folder = folder, .settings = {}, .versions = {}};
  const Listing inside = list_folder(folder).value_or(Listing());
  model.settings = fingerprint_of(folder, inside.files);
  for (const std::string& version : inside.folders) {
    if (const auto number = parse_version(version))
      model.versions[*number] = {fs::path(folder) / version, fingerprint_of(fs::path(folder) / version)};
    else if (!version.empty() &&
             (std::isdigit(static_cast<unsigned char>(version.front())) || version.front() == '-' || version == "latest"))
      remarks.say(fmt::format("model '{}': folder '{}' is left out: a version is a decimal number without leading zeros", name, version));
  }
  return model;
}

Result<ModelFiles> find_model(const ModelRoot& root, const std::string& name, Remarks& remarks) {
  const bool file = is_file(root);
  std::error_code error;
  if (!file) fs::directory_iterator(root.path, error);
  if (error) return Error{Code::kUnavailable, fmt::format("{}: cannot be listed", root.path)};
  Error not_there{Code::kNotFound, fmt::format("{}: has no model '{}'", root.path, name)};
  if (file || !root.name.empty()) return name == name_of(root) ? Result<ModelFiles>(list_single(root, remarks)) : not_there;
  const fs::path folder = fs::path(root.path) / name;
  if (!is_model_name(name) || !fs::is_directory(folder, error)) return not_there;
  ModelFiles model = list_model(name, folder, remarks);
  model.repository = root.path;
  return model;
}

std::optional<ModelsByName> list_models(const ModelRoot& root, Remarks& remarks) {
  const bool file = is_file(root);
  const auto inside = file ? std::optional(Listing()) : list_folder(root.path);
  if (!inside) return std::nullopt;
  ModelsByName models;
  if (file || !root.name.empty()) {
    models[name_of(root)] = list_single(root, remarks);
    return models;
  }
  for (const std::string& name : inside->folders) {
    if (is_model_name(name))
      (models[name] = list_model(name, fs::path(root.path) / name, remarks)).repository = root.path;
    else
      remarks.say(fmt::format("{}: folder '{}' is left out: a model's name has letters, digits, '_', '-' and '.' only", root.path, name));
  }
  return models;
}

}  // namespace serin::serving
