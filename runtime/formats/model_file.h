// model_file.h: which file of a folder is the model; and where there is none that is read here, what lies there, and the command that makes a servable one of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::formats {

/// <folder>/<name>; where there is no such file, the only one whose name ends in .onnx. kUnsupported where a model of another kind lies there, with what to do;
/// kNotFound. Messages do not say where the folder lies.
Result<std::string> find_model_file(const std::string& folder, const std::string& name);

/// "'saved_model.pb' is a TensorFlow SavedModel: export it with ..."; nothing where no file of the folder says what it is.
std::optional<std::string> describe_foreign_model(const std::string& folder);
/// The same, of a file by its name.
std::optional<std::string> describe_foreign_file(const std::string& name);
/// What files of that name, or ending, are: "a PyTorch model: torch.onnx.export(...)". Null: nothing that is known.
const char* foreign_kind(std::string_view name);

}  // namespace serin::formats
