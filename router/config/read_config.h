// read_config.h: Reads router.yaml.
#pragma once

#include <string>

#include "router/config/config.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Errors name the file, line, column and allowed values. A missing file is kNotFound.
Result<RouterConfig> load_config(const std::string& path);
Result<RouterConfig> read_config(const config::Node& root);

}  // namespace serin::router
