// model_settings_files.cc: which of a model's files say how it is served: config.pbtxt, and over it serin.yaml.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/serving/model_config.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{1} << 20;

/// Nothing: there is none.
Result<std::optional<ReadModelConfig>> read_config(const fs::path& folder, const std::string& json) {
  if (!json.empty()) {
    SERIN_TRY(ReadModelConfig read, parse_model_config_json(json));
    return std::optional(std::move(read));
  }
  const auto text = read_file((folder / "config.pbtxt").string(), kMostBytes);
  if (!text && text.error().code == Code::kNotFound) return std::optional<ReadModelConfig>();
  if (!text) return text.error();
  SERIN_TRY(ReadModelConfig read, parse_model_config(*text));
  return std::optional(std::move(read));
}

}  // namespace

Result<ModelSettings> read_model_folder(const std::string& folder, const std::string& name, const std::string& config,
                                        const ModelSettings& defaults) {
  if (folder.empty() && config.empty()) return defaults;
  const char* const from = config.empty() ? "config.pbtxt" : "config";
  auto read = read_config(folder, config);
  if (!read) return read.error().in(from);
  ModelSettings settings = defaults;
  const std::string yaml = folder.empty() ? std::string() : (fs::path(folder) / "serin.yaml").string();
  if (*read) {
    if (const Status applied = apply_model_config(**read, folder, settings); !applied) return applied.error().in(from);
    if (const std::string& own = (*read)->config.name(); !own.empty() && !name.empty() && own != name)
      return invalid(fmt::format("{}: name is '{}': it must be that of the model's folder, or be left out", from, own));
    const std::string subject = name.empty() ? fs::path(folder).filename().string() : name;
    if (!(*read)->ignored.empty()) log::warning("model '{}': {}: ignored: {}", subject, from, fmt::join((*read)->ignored, "; "));
    std::error_code unreadable;
    if (fs::exists(yaml, unreadable)) log::info("model '{}': what serin.yaml says holds, the rest is as {} says", subject, from);
  }
  return yaml.empty() ? settings : read_model_settings(yaml, settings);
}

}  // namespace serin::serving
