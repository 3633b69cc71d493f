// model_layout.cc: which names in a folder are models, versions, or neither. Nothing of this tells one protocol's place from another's: a layout that any of
// those servers takes is taken.

#include "runtime/serving/repository/model_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "runtime/base/log.h"
#include "runtime/base/utf8.h"
#include "runtime/formats/model_file.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigs = "configs";             // of a model, to choose from (ModelSettings::config_name)
constexpr std::string_view kOfTheFileSystem = "lost+found";  // in the root of every ext4

bool is_file(const ModelRoot& root) {
  std::error_code error;
  return fs::is_regular_file(root.path, error);
}

/// Or a folder with such a name, which holds one with its weights.
/// The first of what lies there that is called as a model is; null: nothing.
const std::string* find_model_named(const Listing& inside) {
  for (const auto* names : {&inside.files, &inside.folders})
    if (const auto found = std::ranges::find_if(*names, formats::has_model_ending); found != names->end()) return &*found;
  return nullptr;
}

/// U+0000 to U+001F, U+007F to U+009F, in UTF-8.
bool has_control_characters(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0)) return true;
  }
  return false;
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
  return !name.empty() && name.size() <= 256 && name.front() != '.' && name.find('/') == std::string_view::npos && is_utf8(name) &&
         !has_control_characters(name);
}

Status check_root(const ModelRoot& root) {
  std::error_code error;
  const bool file = is_file(root);
  if (!file && !fs::exists(root.path, error)) return not_there(root.path);
  if (!file && !fs::is_directory(root.path, error))
    return Error{Code::kInvalidArgument, fmt::format("{}: neither a folder nor a file", root.path)};
  if (!file) fs::directory_iterator(root.path, error);
  if (error) return Error{Code::kPermissionDenied, fmt::format("{}: cannot be listed: {}", root.path, error.message())};
  if ((file || !root.name.empty()) && !is_model_name(name_of(root)))
    return Error{Code::kInvalidArgument, fmt::format("{}: '{}' is no name for a model: it {}", root.path, name_of(root), kModelNameRule)};
  return {};
}

Status check_names(const std::vector<ModelRoot>& roots) {
  std::map<std::string, const ModelRoot*> named;
  for (const ModelRoot& root : roots) {
    if (!is_file(root)) continue;
    const auto [held, is_new] = named.try_emplace(name_of(root), &root);
    if (!is_new)
      return Error{Code::kInvalidArgument,
                   fmt::format("{} and {} are both model '{}': rename one, or lay them in <name>/1/model.onnx and name that folder",
                               held->second->path, root.path, held->first)};
  }
  return {};
}

std::string describe_misplaced(const ModelRoot& root) {
  const auto inside = list_folder(root.path);
  if (!inside) return "";
  if (const auto model = std::ranges::find_if(inside->files, formats::has_model_ending); model != inside->files.end())
    return fmt::format("; '{}' lies right in it: serin serve {}", *model, (fs::path(root.path) / *model).string());
  std::error_code error;
  for (const std::string& folder : inside->folders)
    if (version_of_folder(folder) && fs::exists(fs::path(root.path) / folder / "model.onnx", error))
      return fmt::format("; '{}/model.onnx' lies in it, a version of one model: serin serve {} --name NAME", folder, root.path);
  const auto foreign = formats::describe_foreign_model(root.path);
  return foreign ? "; " + *foreign : "";
}

std::string describe_no_version(const ModelFiles& files) {
  const char* const expected = files.alone()
                                   ? "it has no version: a model lies in <version>/model.onnx, or in the only .onnx file of its folder"
                                   : "it has no version: a model lies in <name>/<version>/model.onnx";
  const auto inside = list_folder(files.folder);
  if (!inside) return expected;
  if (const std::string* const model = find_model_named(*inside)) return fmt::format("{}; here it is '{}'", expected, *model);
  if (const auto foreign = formats::describe_foreign_model(files.folder)) return fmt::format("{}; {}", expected, *foreign);
  for (const std::string& folder : inside->folders) {
    const auto deeper = list_folder((fs::path(files.folder) / folder).string());
    if (!deeper) continue;
    const bool versions = std::ranges::any_of(deeper->folders, [](const std::string& name) { return version_of_folder(name).has_value(); });
    if (versions || find_model_named(*deeper)) return fmt::format("{}; the folder '{}' in it looks like one", expected, folder);
  }
  return expected;
}

std::vector<uint64_t> ModelFiles::numbers() const {
  const auto keys = std::views::keys(versions);
  return {keys.begin(), keys.end()};
}

VersionFiles ModelLister::look_at(const std::string& path) const {
  FingerprintMaker maker(most_files_);
  const Status seen = maker.add(path);
  return {.path = path, .fingerprint = maker.take(), .unreadable = seen ? std::string() : seen.error().message};
}

ModelFiles ModelLister::list_model(const std::string& name, const std::string& folder) {
  ModelFiles model{.repository = {}, .folder = folder, .settings = {}, .versions = {}};
  const auto inside = list_folder(folder);
  if (!inside && inside.error().code != Code::kNotFound) model.unreadable = "its folder " + inside.error().message;
  if (!inside) return model;
  FingerprintMaker settings(most_files_);
  (void)settings.add_files(folder, inside->files);
  if (std::ranges::binary_search(inside->folders, kConfigs)) (void)settings.add((fs::path(folder) / kConfigs).string());
  model.settings = settings.take();
  for (const std::string& version : inside->folders) {
    const auto number = version_of_folder(version);
    if (number) {
      // Sorted, so that of several folders with one number that with the fewest zeros in front comes last, which is the one that is taken.
      VersionFiles& files = model.versions[*number];
      if (!files.path.empty())
        remarks.say(fmt::format("model '{}': folder '{}' is left out: '{}' is version {}, too", name,
                                fs::path(files.path).filename().string(), version, *number));
      files = look_at((fs::path(folder) / version).string());
    } else if (std::isdigit(static_cast<unsigned char>(version.front())) || version.front() == '-' || version == "latest") {
      remarks.say(fmt::format("model '{}': folder '{}' is left out: a version is a decimal number", name, version));
    }
  }
  return model;
}

/// A file, or the folder of one model; where that has no versions, it is one. So it is where a model of another kind lies there: loading it says which.
ModelFiles ModelLister::list_single(const ModelRoot& root) {
  if (is_file(root)) return {.repository = root.path, .folder = {}, .settings = {}, .versions = {{1, look_at(root.path)}}};
  ModelFiles model = list_model(root.name, root.path);
  if (model.versions.empty() && model.unreadable.empty())
    if (const auto inside = list_folder(root.path); inside && (find_model_named(*inside) || formats::describe_foreign_model(root.path)))
      model.versions[1] = look_at(root.path);
  model.repository = root.path;
  model.policy = root.versions;
  model.labels = root.labels;
  return model;
}

Result<ModelFiles> ModelLister::find_model(const ModelRoot& root, const std::string& name) {
  const bool file = is_file(root);
  std::error_code error;
  if (!file) fs::directory_iterator(root.path, error);
  if (error) return Error{Code::kUnavailable, fmt::format("the model repository cannot be listed: {}", error.message())};
  Error not_there{Code::kNotFound, fmt::format("{}: has no model '{}'", root.path, name)};
  const bool single = file || !root.name.empty();
  if (single ? name != name_of(root) : !is_model_name(name)) return not_there;
  const std::string folder = (fs::path(root.path) / name).string();
  if (!file)
    if (const auto inside = list_folder(single ? root.path : folder); !inside && inside.error().code == Code::kNotFound) return not_there;
  ModelFiles model = single ? list_single(root) : list_model(name, folder);
  if (!model.unreadable.empty()) return Error{Code::kUnavailable, model.unreadable};
  model.repository = root.path;
  return model;
}

/// Models that lie beside the folders of others, where no name and no version is theirs.
void ModelLister::remark_on_loose_files(const ModelRoot& root, const std::vector<std::string>& files,
                                        const std::vector<ModelRoot>& places) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> loose;
  for (const std::string& name : files) {
    const auto is_it = [&, path = fs::path(root.path) / name](const ModelRoot& place) {
      std::error_code error;
      return fs::path(place.path).filename() == name && fs::equivalent(place.path, path, error);
    };
    if (formats::has_model_ending(name) && std::ranges::none_of(places, is_it)) loose.push_back(name);
  }
  if (loose.empty()) return;
  const auto named = std::views::take(loose, kMostNamed);
  remarks.say(fmt::format(
      "{}: left out: {}{}; a model lies in a folder of its own ({}/1/model.onnx), or its file is named, too: serin serve {} {}", root.path,
      fmt::join(named, ", "), loose.size() > kMostNamed ? fmt::format(" and {} more", loose.size() - kMostNamed) : "",
      fs::path(loose.front()).stem().string(), root.path, (fs::path(root.path) / loose.front()).string()));
}

Result<ModelsByName> ModelLister::list_models(const ModelRoot& root, const std::vector<ModelRoot>& places) {
  ModelsByName models;
  const bool file = is_file(root);
  const auto inside = file ? Listing() : list_folder(root.path);
  if (!inside) return inside.error();
  if (file || !root.name.empty()) {
    models[name_of(root)] = list_single(root);
    return models;
  }
  for (const std::string& name : inside->folders) {
    if (name == kOfTheFileSystem) continue;
    if (is_model_name(name))
      (models[name] = list_model(name, (fs::path(root.path) / name).string())).repository = root.path;
    else
      remarks.say(fmt::format("{}: folder '{}' is left out: a model's name {}", root.path, name, kModelNameRule));
  }
  if (!models.empty()) remark_on_loose_files(root, inside->files, places);  // where there is none, describe_misplaced says it
  return models;
}

}  // namespace serin::serving
