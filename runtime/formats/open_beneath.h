// open_beneath.h: opens files that a model names.
//
// A hostile model could name /etc/shadow. A path must be a plain relative one beneath the model's folder. Each component is opened relative to
// its parent folder, without following links. So no link leads out of the folder, even if it is created during the search.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/formats/input_file.h"

namespace serin::formats {

/// Opens `relative`, such as "variables/variables.index", beneath the folder. `role` names it in errors: "external data", "file".
///
/// Errors: kPermissionDenied (it leads out of the folder, names no file, is a link or has a second name), kNotFound, those of InputFile.
Result<InputFile> open_beneath(const std::string& folder, std::string_view relative, std::string_view role);

}  // namespace serin::formats
