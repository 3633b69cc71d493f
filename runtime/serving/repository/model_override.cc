#include "runtime/serving/repository/model_override.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/serving/repository/catalogue.h"
#include "runtime/serving/repository/model_layout.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

/// "1/model.onnx" or "labels.txt": never outside the folder, nothing hidden.
Status check_file_name(std::string_view name) {
  const size_t slash = name.find('/');
  const std::string_view file = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const bool is_folder = slash == std::string_view::npos && parse_version(name);
  if (is_model_name(file) && !is_folder && (slash == std::string_view::npos || parse_version(name.substr(0, slash)))) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("parameter 'file:{}': must be file:<version>/<name>, and a name {}", name.substr(0, 128), kModelNameRule)};
}

Status write_file(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directory(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
  if (file) return {};
  return Error{Code::kIo, fmt::format("failed to poll from model repository: file '{}' cannot be kept: {}",
                                      path.filename().string().substr(0, 128), std::strerror(errno))};
}

}  // namespace

Result<std::shared_ptr<const OverrideFolder>> OverrideFolder::write(const ModelOverride& overrides) {
  for (const auto& [name, bytes] : overrides.files) SERIN_CHECK(check_file_name(name));
  std::shared_ptr<OverrideFolder> made(new OverrideFolder);
  made->config_ = overrides.config;
  if (overrides.files.empty()) return made;
  SERIN_TRY(made->folder_, TemporaryFolder::make("serin-load"));
  for (const auto& [name, bytes] : overrides.files) SERIN_CHECK(write_file(fs::path(made->path()) / name, bytes));
  return made;
}

bool OverrideFolder::may_read(const std::string& path) const {
  return this->path().empty() || path.empty() || fs::path(path).lexically_normal().string().starts_with(this->path() + "/");
}

}  // namespace serin::serving
