// recognise.h: recognises the format of a file that is not an ONNX model.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/wire.h"

namespace serin::formats {

using wire::Bytes;

/// Returns "an HTML page (a download that went to a login or error page?)", or nothing if the format is unknown.
std::optional<std::string> recognise(Bytes file);

}  // namespace serin::formats
