// openapi.h: the admin API as an OpenAPI 3.1 document (openapi.json): for clients that are generated, and for tools that try to break it.
#pragma once

#include <string_view>

namespace serin::router {

std::string_view openapi_document();

}  // namespace serin::router
