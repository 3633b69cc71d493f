// places.cc: lists with the code of the repository, so that what is planned is what `serve` loads. The folder of one model is taken, too.

#include "runtime/planner/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/formats/model_file.h"
#include "runtime/serving/repository/model_layout.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::planner {
namespace {

namespace fs = std::filesystem;

std::string last_name(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

serving::ModelRoot root_of(const std::string& place) {
  std::error_code error;
  serving::ModelRoot root{.path = place};
  if (fs::is_directory(place, error) && is_one_model(place)) root.name = last_name(place);
  return root;
}

Status add_versions(const std::string& name, const serving::ModelFiles& files, const config::Node* yaml, std::vector<FoundModel>& found) {
  const auto in_model = [&](const Error& error) { return error.in(fmt::format("model '{}'", name)); };
  if (!files.unreadable.empty()) return in_model({Code::kUnavailable, files.unreadable});
  auto settings = serving::read_model_folder(files.folder, files.alone() ? "" : name, "", {}, yaml);
  if (!settings) return in_model(settings.error());
  if (settings->ensemble) return {};  // it runs other models and has no weights
  if (files.versions.empty()) return in_model({Code::kNotFound, serving::describe_no_version(files)});
  for (const uint64_t number : settings->versions.choose(files.numbers())) {
    const std::string& path = files.versions.at(number).path;
    auto file = files.folder.empty() ? Result<std::string>(path) : formats::find_model_file(path, settings->file);
    if (!file) return in_model(file.error());
    found.push_back({name, std::to_string(number), *file, files.folder, *settings});
  }
  return {};
}

}  // namespace

bool is_one_model(const std::string& folder) {
  if (formats::find_model_file(folder, "model.onnx")) return true;
  const auto inside = serving::list_folder(folder);
  return inside && std::ranges::any_of(inside->folders, [&](const std::string& name) {
           return serving::version_of_folder(name) && formats::find_model_file((fs::path(folder) / name).string(), "model.onnx");
         });
}

Result<std::vector<FoundModel>> find_models(const std::vector<std::string>& places, const config::Node* settings) {
  std::vector<FoundModel> found;
  std::vector<serving::ModelRoot> roots;
  roots.reserve(places.size());
  for (const std::string& place : places) roots.push_back(root_of(place));
  serving::ModelLister lister(1);
  for (const serving::ModelRoot& root : roots) {
    SERIN_CHECK(serving::check_root(root));
    SERIN_TRY(const serving::ModelsByName models, lister.list_models(root, roots));
    if (models.empty())
      return Error{Code::kNotFound, fmt::format("{}: there is no model in it{}", root.path, serving::describe_misplaced(root))};
    for (const auto& [name, files] : models) SERIN_CHECK(add_versions(name, files, settings, found));
  }
  if (found.empty()) return Error{Code::kNotFound, fmt::format("{}: there is no model in it that has a file", places.front())};
  return found;
}

}  // namespace serin::planner
