// model_file.h: finds the model file of a folder, and explains how to convert a model of another format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::formats {

/// Returns <folder>/<name>, or, if there is no such file, the only file whose name ends in .onnx. Otherwise kUnsupported if the folder has
/// a model of another format, with instructions, or kNotFound. Messages do not contain the folder's path.
Result<std::string> find_model_file(const std::string& folder, const std::string& name);

/// Returns "'saved_model.pb' is a TensorFlow SavedModel: export it with ...", or nothing if no file of the folder has a known format.
std::optional<std::string> describe_foreign_model(const std::string& folder);
/// The same for a file, by its name.
std::optional<std::string> describe_foreign_file(const std::string& name);
/// Describes files of that name or extension: "a PyTorch model: torch.onnx.export(...)". Null: an unknown format.
const char* foreign_kind(std::string_view name);

}  // namespace serin::formats
