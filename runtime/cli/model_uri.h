// model_uri.h: models of MLflow on the command line, for commands that read a model's file or folder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::cli {

/// Replaces each place that is models:/NAME/VERSION, models:/NAME@ALIAS or models:/NAME/latest by the folder of that version, after it was
/// downloaded into the user's cache. All others stay. On an error the command ends with the exit code that this returns; the reason is printed.
std::optional<int> fetch_model_uris(std::string_view command, std::span<std::string> places);

}  // namespace serin::cli
