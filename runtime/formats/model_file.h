// model_file.h: finds the model file of a folder, tells its format, and explains how to convert a model of a format that is not read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::formats {

/// The formats that are read, in the order in which they are preferred where a folder has models of several.
enum class Format : uint8_t { kOnnx, kTorch, kXgboost, kLightGbm, kTensorFlow, kKeras, kPaddle };

/// Their words in configuration and answers, by their numbers.
inline constexpr std::array<std::string_view, 7> kFormatWords = {"onnx", "torch", "xgboost", "lightgbm", "tensorflow", "keras", "paddle"};
constexpr std::string_view format_word(Format format) { return kFormatWords[static_cast<size_t>(format)]; }

/// The format of a model at that path, by its name and the files next to it; nothing if no reader takes it.
std::optional<Format> format_of(const std::string& path);
/// "ONNX (.onnx), torch.export (.pt2) ...": what is read, for messages.
extern const char* const kReadableFormats;
/// Whether the path of a model ends in a name that only files of models have: digits.onnx.
bool has_model_ending(std::string_view name);

/// Returns <folder>/<name>, or, if there is no such file, the only model of the most preferred format in the folder. Otherwise kUnsupported
/// if the folder has a model of a format that is not read, with instructions, or kNotFound. Messages do not contain the folder's path.
Result<std::string> find_model_file(const std::string& folder, const std::string& name);

/// Returns "'saved_model.pb' is a TensorFlow SavedModel: export it with ...", or nothing if no file of the folder has a known format.
std::optional<std::string> describe_foreign_model(const std::string& folder);
/// The same for a file, by its name.
std::optional<std::string> describe_foreign_file(const std::string& name);
/// Describes files of that name or extension: "a PyTorch model: torch.onnx.export(...)". Null: an unknown format.
const char* foreign_kind(std::string_view name);

}  // namespace serin::formats
