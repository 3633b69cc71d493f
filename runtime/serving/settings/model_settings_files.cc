// model_settings_files.cc: which of a model's files say how it is served: config.pbtxt, and over it serin.yaml.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/serving/settings/model_config.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestModelConfig = size_t{1} << 20;

/// What says how the model is served, within its folder: one configuration of several (configs/h100.pbtxt), where it has that one.
std::string config_file(const fs::path& folder, const std::string& name) {
  std::string own = fmt::format("configs/{}.pbtxt", name);
  std::error_code error;
  return !name.empty() && fs::exists(folder / own, error) ? own : "config.pbtxt";
}

/// Nothing: there is no such file.
Result<std::optional<ReadModelConfig>> read_config(const fs::path& path) {
  const auto text = read_file(path.string(), kLargestModelConfig);
  if (!text && text.error().code == Code::kNotFound) return std::optional<ReadModelConfig>();
  if (!text) return text.error();
  SERIN_TRY(ReadModelConfig read, parse_model_config(*text));
  return std::optional(std::move(read));
}

Result<std::optional<ReadModelConfig>> parse_config(const std::string& json) {
  SERIN_TRY(ReadModelConfig read, parse_model_config_json(json));
  return std::optional(std::move(read));
}

}  // namespace

Result<ModelSettings> read_model_folder(const std::string& folder, const std::string& name, const std::string& config,
                                        const ModelSettings& defaults, const config::Node* yaml) {
  if (folder.empty() && config.empty()) return yaml ? read_model_settings(*yaml, folder, defaults) : defaults;
  const std::string from = config.empty() ? config_file(folder, defaults.config_name) : "config";
  auto read = config.empty() ? read_config(fs::path(folder) / from) : parse_config(config);
  if (!read) return read.error().in(from);
  ModelSettings settings = defaults;
  const std::string own_yaml = folder.empty() ? std::string() : (fs::path(folder) / "serin.yaml").string();
  if (*read) {
    if (const Status applied = apply_model_config(**read, folder, settings); !applied) return applied.error().in(from);
    if (const std::string& own = (*read)->config.name(); !own.empty() && !name.empty() && own != name)
      return invalid(fmt::format("{}: name is '{}': it must be that of the model's folder, or be left out", from, own));
    const std::string subject = name.empty() ? fs::path(folder).filename().string() : name;
    if (!(*read)->ignored.empty()) log::warning("model '{}': {}: ignored: {}", subject, from, fmt::join((*read)->ignored, "; "));
    std::error_code unreadable;
    if (fs::exists(own_yaml, unreadable)) log::info("model '{}': what serin.yaml says holds, the rest is as {} says", subject, from);
  }
  if (yaml) return read_model_settings(*yaml, folder, settings);
  return own_yaml.empty() ? settings : read_model_settings(own_yaml, settings);
}

}  // namespace serin::serving
