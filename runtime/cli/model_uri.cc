#include "runtime/cli/model_uri.h"

#include <cstdio>

#include "runtime/base/cache_folder.h"
#include "runtime/cli/commands.h"
#include "runtime/registry/mlflow_registry.h"
#include "runtime/registry/registry.h"
#include "runtime/registry/remote_address.h"

namespace serin::cli {
namespace {

Result<std::string> fetched(const std::string& uri) {
  SERIN_TRY(const registry::Reference reference, registry::parse_model_uri(uri));
  if (cache_folder().empty()) return invalid("there is no folder for what is downloaded: set XDG_CACHE_HOME or HOME");
  SERIN_TRY(const auto remote, registry::open_remote(std::string(registry::kModels), cache_folder() + "/models", {}));
  SERIN_CHECK(remote->refresh(reference));
  const registry::Registry mirror(remote->mirror());
  SERIN_TRY(const registry::Version version, mirror.find(reference));
  SERIN_CHECK(remote->fetch(reference.model, version));
  SERIN_TRY(const registry::Pulled pulled, mirror.pull({reference.model, version.digest}, remote->mirror() + ".models"));
  return pulled.folder;
}

}  // namespace

std::optional<int> fetch_model_uris(std::string_view command, std::span<std::string> places) {
  for (std::string& place : places) {
    if (!place.starts_with(registry::kModels)) continue;
    auto folder = fetched(place);
    if (!folder) {
      std::fprintf(stderr, "serin %.*s: %s\n", static_cast<int>(command.size()), command.data(), folder.error().message.c_str());
      return folder.error().code == Code::kInvalidArgument || folder.error().code == Code::kNotFound ? kUsage : kCannotRun;
    }
    place = *std::move(folder);
  }
  return std::nullopt;
}

}  // namespace serin::cli
