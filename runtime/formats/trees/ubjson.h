// ubjson.h: Universal Binary JSON, as XGBoost writes it, into JSON.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::formats::trees {

/// kCorrupt, with a byte offset, for what is cut off or not UBJSON; kUnsupported for numbers of any precision.
Result<std::string> json_from_ubjson(std::string_view bytes);

}  // namespace serin::formats::trees
