#include "runtime/cli/up/model_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/number.h"
#include "runtime/cli/offline/file_digest.h"
#include "runtime/registry/versions.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr size_t kMostMemory = 16 << 20;

/// Files below a folder, without hidden ones.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code gone;
  for (fs::recursive_directory_iterator it(folder, gone), end; !gone && it != end; it.increment(gone)) {
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory(gone)) it.disable_recursion_pending();
    } else if (it->is_regular_file(gone)) {
      files.push_back(it->path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string ModelFolders::path(const std::string& model, uint64_t version) const {
  const std::string folder = fmt::format("{}/{}", folder_, model);
  const auto listing = serving::list_folder(folder);
  if (listing)
    for (const std::string& name : listing->folders)
      if (serving::version_of_folder(name) == version) return fmt::format("{}/{}", folder, name);
  return fmt::format("{}/{}", folder, version);
}

Result<std::map<std::string, ModelFolders::Versions>> ModelFolders::list() const {
  SERIN_TRY(const serving::Listing listing, serving::list_folder(folder_));
  std::map<std::string, Versions> models;
  for (const std::string& model : listing.folders) {
    if (!registry::is_name(model)) continue;
    const std::string folder = fmt::format("{}/{}", folder_, model);
    const auto inside = serving::list_folder(folder);
    if (!inside) continue;
    const std::string settings = folder + "/serin.yaml";
    std::error_code absent;
    for (const std::string& name : inside->folders) {
      const auto version = serving::version_of_folder(name);
      std::vector<std::string> files = version ? files_in(fmt::format("{}/{}", folder, name)) : std::vector<std::string>();
      if (files.empty()) continue;
      if (fs::exists(settings, absent)) files.push_back(settings);
      if (const auto stamp = stamp_of(files)) models[model][*version] = *stamp;
    }
  }
  return models;
}

Status ModelFolders::remember() {
  const auto text = read_file(memory_, kMostMemory);
  if (!text) return text.error().code == Code::kNotFound ? Status() : Status(text.error());
  boost::system::error_code error;
  const json::value value = json::parse(*text, error);
  Error corrupt{Code::kCorrupt, fmt::format("{}: is damaged; without it every version counts as new", memory_)};
  if (error || !value.is_object()) return corrupt;
  for (const auto& [model, versions] : value.get_object()) {
    if (!versions.is_object()) return corrupt;
    for (const auto& [name, stamp] : versions.get_object()) {
      const auto number = parse_number<uint64_t>(std::string_view(name));
      if (!number || !stamp.is_string()) return corrupt;
      seen_[std::string(model)][*number] = std::string(stamp.get_string());
    }
  }
  return {};
}

Status ModelFolders::saw(const std::string& model, const Versions& versions) {
  for (const auto& [number, stamp] : versions) seen_[model][number] = stamp;
  json::object all;
  for (const auto& [name, of] : seen_) {
    json::object stamps;
    for (const auto& [number, stamp] : of) stamps[std::to_string(number)] = stamp;
    all[name] = std::move(stamps);
  }
  return write_file_atomically(memory_, json::serialize(all) + "\n");
}

std::optional<uint64_t> ModelFolders::fresh(const std::string& model, const Versions& versions) {
  const Versions before = std::exchange(last_[model], versions);
  const Versions& seen = seen_[model];
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    const auto& [number, stamp] = *version;
    const auto known = seen.find(number), was = before.find(number);
    if (known != seen.end() && known->second == stamp) continue;
    const bool still = was != before.end() && was->second == stamp;
    return still ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace serin::cli
