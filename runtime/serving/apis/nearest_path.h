// nearest_path.h: which path somebody may have meant who asked for one that there is not: /v2/model/digits/infr, /v1/models/digits/predict.
#pragma once

#include <string>

#include "runtime/net/http.h"

namespace serin::serving {

class Frontend;

/// "; did you mean /v2/models/digits/infer?", or where the metrics are; nothing where no path is near. Nothing in Triton's place: its words are known by heart.
std::string path_meant(Frontend& frontend, const net::Request& request);
/// 404, with what path_meant() says.
net::Response unknown_path(Frontend& frontend, const net::Request& request);

}  // namespace serin::serving
