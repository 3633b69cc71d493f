// model_folder.h: the folder of a SavedModel, and the files that may be read from it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"

namespace serin::formats::tf {

/// Opens `relative`, such as "variables/variables.index", beneath the folder. Links are not followed, and hard links are refused, so that a
/// model cannot name files outside its folder. Errors name `relative`.
Result<std::shared_ptr<const InputFile>> open_beneath(const std::string& folder, std::string_view relative);

/// Reads the whole file. kTooLarge over `limit`.
Result<std::shared_ptr<const std::byte>> read_whole(const InputFile& file, size_t limit);

}  // namespace serin::formats::tf
