// recognise.h: what a file is that is not an ONNX model.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/wire.h"

namespace serin::formats {

using wire::Bytes;

/// "an HTML page (a download that went to a login or error page?)"; nothing where the bytes do not say.
std::optional<std::string> recognise(Bytes file);

}  // namespace serin::formats
