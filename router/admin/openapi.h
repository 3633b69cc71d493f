// openapi.h: The admin API as an OpenAPI 3.1 document (openapi.json), for client generators and fuzzers.
#pragma once

#include <string_view>

namespace serin::router {

std::string_view openapi_document();

}  // namespace serin::router
