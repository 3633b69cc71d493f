#include "runtime/cli/offline/model_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/formats/model_file.h"
#include "runtime/serving/scheduling/signature.h"
#include "runtime/serving/settings/model_folder.h"
#include "runtime/serving/settings/settings.h"
#include "runtime/steps/pipeline/paddle_steps.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;

/// The highest version in a model's folder; empty: it has none.
Result<std::string> highest_version(const std::string& folder) {
  SERIN_TRY(const serving::Listing listing, serving::list_folder(folder));
  uint64_t highest = 0;
  std::string found;
  for (const std::string& name : listing.folders) {
    const auto version = serving::version_of_folder(name);
    if (version && (found.empty() || *version > highest)) {
      highest = *version;
      found = (fs::path(folder) / name).string();
    }
  }
  return found;
}

void append_files(const std::string& folder, bool deep, std::vector<std::string>& files) {
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->is_directory(failure)) {
      if (!deep) entry.disable_recursion_pending();
    } else if (entry->is_regular_file(failure)) {
      files.push_back(entry->path().string());
    }
  }
}

/// A step sees tensors of one row.
Status check_tensors(std::span<const engine::TensorInfo> infos, std::string_view kind) {
  for (const engine::TensorInfo& info : infos)
    if (info.kind != graph::ValueKind::kTensor || !info.ranked)
      return Error{Code::kUnsupported, fmt::format("{} '{}' is not a tensor of known rank", kind, info.name)};
  return {};
}

}  // namespace

Result<ModelPlace> find_model(const std::string& given) {
  std::error_code unreadable;
  const fs::path path = fs::path(given).lexically_normal();
  if (!fs::exists(path, unreadable)) return Error{Code::kNotFound, given + ": no such model"};
  ModelPlace place;
  if (!fs::is_directory(path, unreadable) || formats::has_model_ending(path.filename().string())) {
    place.file = given;
    return place;
  }
  std::string folder = path.has_filename() ? path.string() : path.parent_path().string();
  SERIN_TRY(std::string version, highest_version(folder));
  if (version.empty()) {
    version = folder;
    const fs::path parent = fs::absolute(folder, unreadable).parent_path();
    if (serving::version_of_folder(fs::path(folder).filename().string())) folder = parent.string();
  }
  auto settings = serving::read_model_folder(folder, "", "", {});
  if (!settings) return settings.error().in(folder);
  if (settings->ensemble)
    return Error{Code::kUnsupported, fmt::format("{}: the model is an ensemble, whose steps are other models: name one of them", given)};
  const auto file = formats::find_model_file(version, settings->file);
  if (!file) return file.error().in(version);
  place.file = *file;
  place.steps = std::move(settings->steps);
  place.steps.given = place.steps.given || settings->config || settings->sequences;
  place.settings = folder;
  return place;
}

Result<serving::RowSteps> steps_around(const ModelPlace& place, std::span<const engine::TensorInfo> inputs,
                                       std::span<const engine::TensorInfo> outputs, bool batchable) {
  SERIN_CHECK(check_tensors(inputs, "input"));
  SERIN_CHECK(check_tensors(outputs, "output"));
  const auto ins = serving::specs_of(inputs), outs = serving::specs_of(outputs);
  steps::StepsSettings settings = place.steps;
  if (!settings.given && !place.settings.empty()) {
    if (const auto file = steps::find_paddle_export(fs::path(place.file).parent_path().string())) {
      SERIN_TRY(auto found, serving::RowSteps::of_export(*file, ins, outs, batchable));
      if (found) settings = *std::move(found);
    }
  }
  return serving::RowSteps::make(std::move(settings), ins, outs, batchable);
}

Result<std::vector<std::string>> files_of(const ModelPlace& place) {
  std::vector<std::string> files;
  std::error_code unreadable;
  if (fs::is_directory(place.file, unreadable)) {
    append_files(place.file, /*deep=*/true, files);
  } else if (place.settings.empty()) {
    files.push_back(place.file);
    const std::string weights = place.file + ".data";  // ONNX's external data has no fixed name; this is the usual one
    if (fs::exists(weights, unreadable)) files.push_back(weights);
  } else {
    append_files(fs::path(place.file).parent_path().string(), /*deep=*/true, files);
    if (fs::path(place.file).parent_path() != fs::path(place.settings)) append_files(place.settings, /*deep=*/false, files);
  }
  std::ranges::sort(files);
  if (files.empty()) return Error{Code::kNotFound, place.file + ": has no files"};
  return files;
}

}  // namespace serin::cli
