// nearest_path.h: suggests a path for an unknown one such as /v2/model/digits/infr or /v1/models/digits/predict.
#pragma once

#include <string>

#include "runtime/net/http.h"

namespace serin::serving {

class Frontend;

/// Returns "; did you mean /v2/models/digits/infer?", or the address of the metrics. Returns an empty text if no path is near, and in
/// Triton's dialect, where clients expect its own messages.
std::string path_meant(Frontend& frontend, const net::Request& request);
/// Makes a 404 with the text of path_meant().
net::Response unknown_path(Frontend& frontend, const net::Request& request);

}  // namespace serin::serving
